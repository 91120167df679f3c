// The usage of a tenant in a month: each resource against its quota, and charts by day with tables.
import type { Usage, UsageSeries } from '../api/types.ts'
import { useLoad } from '../api/use-load.ts'
import { Chart } from '../chart/chart.tsx'
import { exactBytes, percentOf, wholeNumber } from '../format/numbers.ts'
import { Card, Facts, Meter } from '../parts/basics.tsx'
import { Load, Notice } from '../parts/feedback.tsx'
import { MonthChoice, useMonth } from '../parts/month.tsx'
import { Table } from '../parts/table.tsx'
import type { TabProps } from './tab-props.ts'

const charts: [amount: string, title: string][] = [
  ['requests', 'Requests'],
  ['egress_bytes', 'Egress, bytes'],
  ['document_byte_seconds', 'Documents, byte-seconds'],
  ['file_byte_seconds', 'Files, byte-seconds'],
  ['realtime_messages', 'Realtime messages'],
  ['function_invocations', 'Function invocations'],
]

/** The tab of usage. */
export function UsageTab({ tenant }: TabProps) {
  return <UsageOfMonth base={`/v1/tenants/${encodeURIComponent(tenant.tenant_id)}/usage`} />
}

/** The usage of one tenant in a month that the user chooses. @param base the path of the usage, before that of a month */
export function UsageOfMonth({ base }: { base: string }) {
  const [month, setMonth] = useMonth()
  const path = `${base}/${month}`
  const usage = useLoad<Usage>(path)
  const series = useLoad<UsageSeries>(`${path}?granularity=day`)
  return (
    <>
      <div class="filters">
        <label>
          <MonthChoice month={month} onChoose={setMonth} />
        </label>
        <button
          type="button"
          class="button"
          onClick={() => {
            usage.reload()
            series.reload()
          }}
        >
          {usage.isLoading ? 'Reading …' : 'Read again'}
        </button>
      </div>
      <Load load={usage} what="the usage">
        {(body) => (
          <>
            {body.missing_sources.length > 0 && (
              <Notice kind="warn">
                These sources may still report usage of past hours: {body.missing_sources.join(', ')}
              </Notice>
            )}
            <Resources usage={body} />
            {body.components !== undefined && <Components components={body.components} />}
          </>
        )}
      </Load>
      <Load load={series} what="the usage by day">
        {({ parts }) => <Charts month={month} parts={parts} />}
      </Load>
    </>
  )
}

/** A chart of each amount that was used, and the names of the others. */
function Charts({ month, parts }: { month: string; parts: UsageSeries['parts'] }) {
  const isUsed = ([amount]: (typeof charts)[number]) => parts.some(({ amounts }) => (amounts[amount] ?? '0') !== '0')
  const unused = charts.filter((one) => !isUsed(one)).map(([, title]) => title)
  return (
    <>
      {charts.filter(isUsed).map(([amount, title]) => (
        <Chart
          key={amount}
          title={title}
          month={month}
          values={new Map(parts.map(({ start, amounts }) => [start.slice(0, 10), amounts[amount] ?? '0']))}
        />
      ))}
      {unused.length > 0 && (
        <Card title="Without usage in this month">
          <p class="dim">{unused.join(' · ')}</p>
        </Card>
      )}
    </>
  )
}

/** Each resource against its quota. */
function Resources({ usage: { incomplete, month, resources } }: { usage: Usage }) {
  const {
    api_requests: requests,
    storage,
    realtime_connections: connections,
    realtime_messages: messages,
    egress,
    functions,
  } = resources
  const rows: { title: string; used: number | null; limit: number | null; text: (value: number) => string }[] = [
    { title: 'API requests', used: requests.count, limit: requests.limit, text: wholeNumber },
    { title: 'Documents stored now', used: storage.documents_bytes, limit: storage.documents_limit, text: exactBytes },
    { title: 'Files stored now', used: storage.files_bytes, limit: storage.files_limit, text: exactBytes },
    { title: 'Realtime connections, peak', used: connections.peak, limit: connections.limit, text: wholeNumber },
  ]
  return (
    <div class="columns">
      <Card title="Resources against quotas">
        <ul class="quotas">
          {rows.map(({ title, used, limit, text }) => {
            const percent = used === null ? undefined : percentOf(used, limit)
            return (
              <li key={title}>
                <div class="quota-line">
                  <span>{title}</span>
                  <span class="quota-value">
                    {used === null ? 'unknown' : text(used)}
                    <span class="dim"> of {limit === null ? 'unlimited' : text(limit)}</span>
                    {percent !== undefined && <strong> {percent} %</strong>}
                  </span>
                </div>
                <Meter label={title} percent={percent} />
              </li>
            )
          })}
        </ul>
        {incomplete && <p class="dim">{month} is not closed: counts of the last minutes may still arrive.</p>}
      </Card>
      <Card title="In this month">
        <Facts
          facts={[
            ['Requests over a quota or the rate', wholeNumber(requests.refused)],
            ['Requests that reached nothing', wholeNumber(requests.rejected)],
            ['Egress', exactBytes(egress.bytes)],
            ['Files stored now', storage.files_count === null ? 'unknown' : wholeNumber(storage.files_count)],
            ['Realtime messages', wholeNumber(messages.count)],
            ['Function invocations', functions.invocations === null ? 'unknown' : wholeNumber(functions.invocations)],
            ['Function time', `${wholeNumber(functions.duration_ms)} ms`],
            ['Function CPU time', `${wholeNumber(functions.cpu_ms)} ms`],
            ...Object.entries(requests.by_group).map(([group, value]): [string, string] => [
              `Requests: ${group}`,
              wholeNumber(value),
            ]),
          ]}
        />
      </Card>
    </div>
  )
}

/** What each of the tenant's own services uses now. */
function Components({ components }: { components: NonNullable<Usage['components']> }) {
  return (
    <Card title="Services now">
      <Table
        label="Services now"
        rows={Object.entries(components)}
        rowKey={([name]) => name}
        columns={[
          { title: 'Service', cell: ([name]) => <strong>{name}</strong> },
          {
            title: 'CPU seconds',
            isNumber: true,
            cell: ([, { cpu_seconds: value }]) => (value === null ? 'unknown' : wholeNumber(value)),
          },
          {
            title: 'Memory, bytes',
            isNumber: true,
            cell: ([, { memory_bytes: value }]) => (value === null ? 'unknown' : wholeNumber(value)),
          },
          {
            title: 'Disk, bytes',
            isNumber: true,
            cell: ([, { disk_bytes: value }]) => (value === null ? 'unknown' : wholeNumber(value)),
          },
        ]}
      />
    </Card>
  )
}
