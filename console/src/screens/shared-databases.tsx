// The shared databases of a region: how full they are, their limits, and their relief.
import { useState } from 'preact/hooks'
import { call } from '../api/client.ts'
import type { SharedDatabase } from '../api/types.ts'
import { useLoad } from '../api/use-load.ts'
import { wholeNumber } from '../format/numbers.ts'
import { Age, Bytes } from '../parts/basics.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Empty, Load } from '../parts/feedback.tsx'
import { fieldError, Form, TextField, useAction } from '../parts/form.tsx'
import { Table } from '../parts/table.tsx'
import { useIsAdmin } from '../session.ts'
import { DatabaseState } from './database-state.tsx'
import { PlanRebalance, Rebalances } from './rebalances.tsx'

const reloadMs = 10_000

/** The shared databases of a region, with the rebalances that relieve them. */
export function SharedDatabases({ region }: { region: string }) {
  const isAdmin = useIsAdmin()
  const path = `/v1/regions/${encodeURIComponent(region)}`
  const load = useLoad<{ databases: SharedDatabase[] }>(`${path}/databases`, { everyMs: reloadMs })
  const [limited, setLimited] = useState<SharedDatabase | undefined>(undefined)
  const [isPlanning, setPlanning] = useState(false)
  const [started, setStarted] = useState(0)
  return (
    <section aria-label={`Shared databases of ${region}`}>
      <header class="card-head">
        <h3>Shared databases</h3>
        {isAdmin && (
          <div class="card-actions">
            <button type="button" class="button small" onClick={() => setPlanning(true)}>
              Plan a rebalance of {region}
            </button>
          </div>
        )}
      </header>
      {limited !== undefined && (
        <ChangeLimits path={path} database={limited} onClose={() => setLimited(undefined)} onChanged={load.reload} />
      )}
      {isPlanning && (
        <PlanRebalance path={path} onClose={() => setPlanning(false)} onStarted={() => setStarted(started + 1)} />
      )}
      <Load load={load} what="shared databases">
        {({ databases }) =>
          databases.length === 0 ? (
            <Empty title="There is no shared database yet.">The first shared tenant of the region opens one.</Empty>
          ) : (
            <Table
              label={`Shared databases of ${region}`}
              rows={databases}
              rowKey={({ name }) => name}
              columns={[
                { title: 'Database', cell: ({ name }) => <code>{name}</code> },
                { title: 'State', cell: ({ exceeds }) => <DatabaseState exceeds={exceeds} /> },
                {
                  title: 'Homes',
                  isNumber: true,
                  cell: ({ homes, max_homes: max }) => `${wholeNumber(homes)} of ${wholeNumber(max)}`,
                },
                { title: 'Size', isNumber: true, cell: ({ bytes }) => <Size bytes={bytes} absent="not measured" /> },
                {
                  title: 'Maximum size',
                  isNumber: true,
                  cell: ({ max_bytes: bytes }) => <Size bytes={bytes} absent="unlimited" />,
                },
                { title: 'Measured', isMinor: true, cell: ({ measured_at: at }) => <Age at={at} never="never" /> },
                {
                  title: 'Actions',
                  cell: (database) =>
                    isAdmin ? (
                      <button
                        type="button"
                        class="button small"
                        aria-label={`Change limits of ${database.name}`}
                        onClick={() => setLimited(database)}
                      >
                        Change limits
                      </button>
                    ) : (
                      <span class="dim">–</span>
                    ),
                },
              ]}
            />
          )
        }
      </Load>
      <Rebalances key={started} region={region} path={path} />
    </section>
  )
}

function Size({ bytes, absent }: { bytes: number | null; absent: string }) {
  if (bytes === null) return <span class="dim">{absent}</span>
  return <Bytes bytes={bytes} />
}

interface ChangeLimitsProps {
  /** The path of the region. */
  path: string
  database: SharedDatabase
  onClose: () => void
  onChanged: () => void
}

function ChangeLimits({ path, database, onClose, onChanged }: ChangeLimitsProps) {
  const action = useAction()
  const [homes, setHomes] = useState(String(database.max_homes))
  const [bytes, setBytes] = useState(database.max_bytes === null ? '' : String(database.max_bytes))
  return (
    <Dialog title={`Limits of ${database.name}`} onClose={onClose}>
      <Form
        action={action}
        submit={['Change the limits', 'Changing …']}
        onCancel={onClose}
        fields={['max_homes', 'max_bytes']}
        onSubmit={async () => {
          const body = { max_homes: Number(homes), max_bytes: bytes === '' ? null : Number(bytes) }
          await call('PATCH', `${path}/databases/${encodeURIComponent(database.name)}`, { body })
          onChanged()
          onClose()
        }}
      >
        <TextField
          label="Maximum number of homes"
          type="number"
          value={homes}
          onInput={setHomes}
          isRequired
          hint="No tenant is created in a database at its limit. Homes leave it only with a rebalance."
          error={fieldError(action.error, 'max_homes')}
        />
        <TextField
          label="Maximum bytes"
          type="number"
          value={bytes}
          onInput={setBytes}
          hint="Empty: unlimited."
          error={fieldError(action.error, 'max_bytes')}
        />
      </Form>
    </Dialog>
  )
}
