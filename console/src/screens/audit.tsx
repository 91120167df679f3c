// The audit log, newest first, and the verification of its chain of hashes.
import { useState } from 'preact/hooks'
import { get } from '../api/client.ts'
import type { AuditEntry, PlatformKey } from '../api/types.ts'
import { useLoad } from '../api/use-load.ts'
import { wholeNumber } from '../format/numbers.ts'
import { Age, Card, ScreenTitle } from '../parts/basics.tsx'
import { Empty, ErrorBox, Load, Notice } from '../parts/feedback.tsx'
import { useAction } from '../parts/form.tsx'
import { Table } from '../parts/table.tsx'
import { linkTo } from '../router.ts'

const pageSize = 50

interface Verification {
  whole: boolean
  entries: number
  broken_at: number | null
}

/** The screen of the audit log. */
export function AuditScreen() {
  const keys = useLoad<{ keys: PlatformKey[] }>('/v1/keys')
  const [positions, setPositions] = useState<number[]>([])
  const before = positions.at(-1)
  const log = useLoad<{ entries: AuditEntry[] }>(
    `/v1/audit?limit=${pageSize}${before === undefined ? '' : `&before=${before}`}`,
    before === undefined ? 'all' : undefined,
  )
  const nameOf = (id: string) => keys.data?.keys.find((key) => key.id === id)?.name ?? id
  const last = log.data?.entries.at(-1)?.seq
  const isFull = log.data?.entries.length === pageSize
  return (
    <>
      <ScreenTitle title="Audit log" note="Every change, with its author. No entry can be changed or removed unnoticed">
        <Verify />
      </ScreenTitle>
      <Card>
        <Load load={log} what="the audit log">
          {({ entries }) =>
            entries.length === 0 ? (
              <Empty title="There are no older entries." />
            ) : (
              <Table
                label="Audit log"
                rows={entries}
                rowKey={({ seq }) => String(seq)}
                columns={[
                  { title: 'No.', isNumber: true, cell: ({ seq }) => seq },
                  { title: 'When', cell: ({ at }) => <Age at={at} /> },
                  { title: 'Author', cell: ({ actor }) => nameOf(actor), isWhole: true },
                  { title: 'Change', cell: ({ action }) => <code>{action}</code>, isWhole: true },
                  {
                    title: 'Target',
                    cell: ({ target }) =>
                      /^t_[0-9a-f]{20}$/.test(target) ? (
                        <a href={linkTo(['tenants', target])}>{target}</a>
                      ) : (
                        <code>{target}</code>
                      ),
                  },
                  { title: 'Detail', cell: ({ detail }) => <Detail detail={detail} /> },
                ]}
              />
            )
          }
        </Load>
        {(isFull || before !== undefined) && (
          <nav class="pager" aria-label="Pages">
            <button
              type="button"
              class="button"
              disabled={before === undefined}
              onClick={() => setPositions(positions.slice(0, -1))}
            >
              Newer
            </button>
            <span>Page {positions.length + 1}</span>
            <button
              type="button"
              class="button"
              disabled={!isFull || last === undefined}
              onClick={() => last !== undefined && setPositions([...positions, last])}
            >
              Older
            </button>
          </nav>
        )}
      </Card>
    </>
  )
}

/** What an entry records in addition: each member with its value. */
function Detail({ detail }: { detail: unknown }) {
  const members = typeof detail === 'object' && detail !== null ? Object.entries(detail) : []
  if (members.length === 0) return null
  return (
    <dl class="detail">
      {members.map(([name, value]: [string, unknown]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <code class="wrap">{typeof value === 'string' ? value : JSON.stringify(value)}</code>
          </dd>
        </div>
      ))}
    </dl>
  )
}

function Verify() {
  const action = useAction()
  const [result, setResult] = useState<Verification | undefined>(undefined)
  return (
    <>
      <button
        type="button"
        class="button"
        disabled={action.isRunning}
        onClick={() => action.run(async () => setResult(await get<Verification>('/v1/audit/verify')))}
      >
        {action.isRunning ? 'Verifying …' : 'Verify the log'}
      </button>
      {action.error !== undefined && <ErrorBox error={action.error} />}
      {result !== undefined &&
        (result.whole ? (
          <Notice kind="good">All {wholeNumber(result.entries)} entries are whole.</Notice>
        ) : (
          <Notice kind="bad">The chain is broken at entry {result.broken_at}.</Notice>
        ))}
    </>
  )
}
