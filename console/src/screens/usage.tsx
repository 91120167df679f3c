// Usage of all tenants in a month, exactly as the API returns it.
import { useState } from 'preact/hooks'
import { get } from '../api/client.ts'
import type { Amounts, UsagePage } from '../api/types.ts'
import { sumOf, wholeNumber } from '../format/numbers.ts'
import { Badge, Card, ScreenTitle } from '../parts/basics.tsx'
import { Empty, ErrorBox, Notice } from '../parts/feedback.tsx'
import { useAction } from '../parts/form.tsx'
import { MonthChoice, useMonth } from '../parts/month.tsx'
import { PagedTable, usePages, type Column } from '../parts/table.tsx'
import { linkTo } from '../router.ts'

/** The amounts that the table shows. */
const shown: [name: string, title: string][] = [
  ['requests', 'Requests'],
  ['egress_bytes', 'Egress, bytes'],
  ['document_byte_seconds', 'Documents, byte-seconds'],
  ['file_byte_seconds', 'Files, byte-seconds'],
  ['connections_peak', 'Connections, peak'],
  ['realtime_messages', 'Realtime messages'],
  ['function_invocations', 'Invocations'],
]
/** Amounts of which a sum over tenants has a meaning. */
const summable = shown.filter(([name]) => name !== 'connections_peak')

type Row = UsagePage['tenants'][number]

/** The screen of the usage of all tenants. */
export function UsageScreen() {
  const [month, setMonth] = useMonth()
  const pages = usePages<UsagePage>(`/v1/usage?month=${month}`)
  const columns: Column<Row>[] = [
    {
      title: 'Tenant',
      cell: ({ tenant_id: id, name }) =>
        name === null ? (
          <>
            <code>{id}</code> <Badge text="deleted" />
          </>
        ) : (
          <a class="strong" href={linkTo(['tenants', id, 'usage'])}>
            {name}
          </a>
        ),
    },
    ...shown.map(([name, title]) => ({
      title,
      isNumber: true,
      cell: ({ amounts }: Row) => wholeNumber(amounts[name] ?? '0'),
    })),
  ]
  return (
    <>
      <ScreenTitle title="Usage" note="All tenants of the installation, with every digit of the ledger">
        <label class="inline-field">
          <MonthChoice month={month} onChoose={setMonth} />
        </label>
      </ScreenTitle>
      <Total key={month} month={month} />
      <Card title={`Usage by tenant in ${month}`}>
        <PagedTable
          pages={pages}
          what="the usage"
          label={`Usage by tenant in ${month}`}
          columns={columns}
          rowsOf={({ tenants }) => tenants}
          rowKey={({ tenant_id: id }) => id}
          empty={<Empty title="No tenant has used anything in this month." />}
        />
      </Card>
    </>
  )
}

/** Adds up all tenants on request, page by page, with exact integers. */
function Total({ month }: { month: string }) {
  const action = useAction()
  const [tenants, setTenants] = useState(0)
  const [total, setTotal] = useState<Amounts | undefined>(undefined)
  const [isIncomplete, setIncomplete] = useState(false)
  const add = async () => {
    let sums: Amounts = {}
    let count = 0
    let cursor: string | null = ''
    let open = false
    while (cursor !== null) {
      const page: UsagePage = await get<UsagePage>(
        `/v1/usage?month=${month}&limit=1000${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
      )
      const before = sums
      sums = Object.fromEntries(
        summable.map(([name]) => [name, sumOf([before[name], ...page.tenants.map(({ amounts }) => amounts[name])])]),
      )
      open ||= page.tenants.some(({ incomplete }) => incomplete)
      count += page.tenants.length
      setTenants(count)
      cursor = page.next_cursor
    }
    setIncomplete(open)
    setTotal(sums)
  }
  return (
    <Card
      title="All tenants together"
      actions={
        <button type="button" class="button" disabled={action.isRunning} onClick={() => action.run(add)}>
          {action.isRunning ? `Adding up … ${wholeNumber(tenants)} tenants so far` : 'Add up all tenants'}
        </button>
      }
    >
      {action.error !== undefined && <ErrorBox error={action.error} />}
      {total === undefined ? (
        <p class="dim">The sum reads the usage of every tenant, a thousand at a time.</p>
      ) : (
        <>
          <ul class="tiles" aria-label="Sum over all tenants">
            {summable.map(([name, title]) => (
              <li key={name} class="tile">
                <span class="tile-number small-number">{wholeNumber(total[name] ?? '0')}</span>
                <span class="tile-title">{title}</span>
              </li>
            ))}
          </ul>
          {isIncomplete && <Notice kind="info">The month is not closed: counts may still arrive.</Notice>}
        </>
      )}
    </Card>
  )
}
