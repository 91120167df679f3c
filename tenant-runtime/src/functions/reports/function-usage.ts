// The usage of functions: sums of their invocations' records, by hours or days in UTC.
import { sql, type Row } from '../../database/statement.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { noSuchFunction } from '../function-store.ts'

export const granularities = ['hour', 'day'] as const
export type Granularity = (typeof granularities)[number]

/** Selects all functions in place of a function's name; it is not a valid name. */
const allFunctions = '-'

export interface UsagePeriod {
  /** First time in milliseconds since 1970. */
  since: number
  /** End in milliseconds since 1970; excluded. */
  until: number
  granularity: Granularity
}

export interface FunctionUsage {
  invocations: { success: number; error: number; timeout: number }
  duration_ms: number
  cpu_ms: number
  /** Sum over all runs of the peak memory times the duration. */
  memory_byte_seconds: number
  memory_peak: number
  /** Bytes sent with `http_fetch`. */
  egress_bytes: number
}

const sums = `count(*) filter (where i.status = 'success') as success, count(*) filter (where i.status = 'error') as error,
  count(*) filter (where i.status = 'timeout') as timeout, coalesce(sum(i.duration_ms), 0)::bigint as duration_ms,
  round(coalesce(sum(i.cpu_ms), 0)::numeric, 3)::float8 as cpu_ms,
  round(coalesce(sum(i.memory_peak::numeric * i.duration_ms), 0) / 1000)::float8 as memory_byte_seconds,
  coalesce(max(i.memory_peak), 0) as memory_peak, coalesce(sum(i.egress_bytes), 0) as egress_bytes`

/** Reads the usage of a function. @throws RuntimeError NO_SUCH_FUNCTION */
export async function readUsage(
  { database }: Tenant,
  context: RlsContext,
  name: string,
  { since, until, granularity }: UsagePeriod,
): Promise<{ total: FunctionUsage; buckets: (FunctionUsage & { start: string })[] }> {
  const [found, buckets] = await database.read(
    context,
    sql('select 1 from functions where $1 = $2 or name = $1 limit 1', name, allFunctions),
    sql(
      `select date_trunc($1::text, i.timestamp, 'UTC') as start, grouping(date_trunc($1::text, i.timestamp, 'UTC')) = 1 as is_total, ${sums}
       from functions f join function_invocations i
         on i.function_id = f.id and i.timestamp >= $2::timestamptz and i.timestamp < $3::timestamptz
       where $4 = $5 or f.name = $4
       group by rollup (date_trunc($1::text, i.timestamp, 'UTC')) order by 1 nulls last`,
      granularity,
      new Date(since).toISOString(),
      new Date(until).toISOString(),
      name,
      allFunctions,
    ),
  )
  if (found?.count !== 1 && name !== allFunctions) throw noSuchFunction()
  const rows = buckets?.rows ?? []
  const total = rows.find((row) => row['is_total'] === true)
  return {
    total: toUsage(total ?? {}),
    buckets: rows
      .filter((row) => row['is_total'] !== true)
      .map((row) => ({ start: String(row['start']), ...toUsage(row) })),
  }
}

function toUsage(row: Row): FunctionUsage {
  const number = (name: string) => Number(row[name] ?? 0)
  return {
    invocations: { success: number('success'), error: number('error'), timeout: number('timeout') },
    duration_ms: number('duration_ms'),
    cpu_ms: number('cpu_ms'),
    memory_byte_seconds: number('memory_byte_seconds'),
    memory_peak: number('memory_peak'),
    egress_bytes: number('egress_bytes'),
  }
}
