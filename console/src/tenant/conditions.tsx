// Conditions: what was last observed of each component, and how long ago.
import type { Condition } from '../api/types.ts'
import { Age, Badge } from '../parts/basics.tsx'
import { Table } from '../parts/table.tsx'

/** Conditions for which `True` is bad. */
const badWhenTrue = ['Drift', 'Disk', 'Loss']
/** Reason of a state for which operators have a remedy that the platform does not observe. */
const privateLinkRequired = 'PrivateLinkRequired'

function kindOf({ type, status, reason }: Condition): 'good' | 'warn' | 'bad' | 'quiet' {
  if (status === 'True') return badWhenTrue.includes(type) ? 'warn' : 'good'
  if (status === 'False') return reason === privateLinkRequired ? 'warn' : 'bad'
  return reason === 'Halted' ? 'quiet' : 'warn'
}

/** The conditions as a table. */
export function Conditions({ conditions }: { conditions: readonly Condition[] }) {
  return (
    <Table
      label="Conditions"
      rows={conditions}
      rowKey={({ type }) => type}
      columns={[
        { title: 'Component', cell: ({ type }) => <strong>{type}</strong> },
        { title: 'State', cell: (condition) => <Badge text={condition.status} kind={kindOf(condition)} /> },
        {
          title: 'Reason',
          cell: ({ reason, message }) => (
            <>
              {reason}
              {message !== '' && <span class="reason"> {message}</span>}
            </>
          ),
        },
        { title: 'Observed', cell: ({ observed_at: at }) => <Age at={at} /> },
      ]}
    />
  )
}
