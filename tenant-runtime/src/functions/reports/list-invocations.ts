// Lists the records of a function's invocations, newest first, page by page.
import { sql } from '../../database/statement.ts'
import { listed } from '../../events/event-reader.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { noSuchFunction } from '../function-store.ts'
import { boundOf } from '../logs/read-log.ts'

export const statuses = ['success', 'error', 'timeout'] as const
export const triggers = ['http', 'database', 'schedule'] as const

interface InvocationFilter {
  statuses: readonly string[] | undefined
  triggers: readonly string[] | undefined
  /** First time in milliseconds since 1970. */
  since: number | undefined
  /** End in milliseconds since 1970; excluded. */
  until: number | undefined
}

/** The position of a page's last record. */
interface InvocationPosition {
  timestamp: string
  id: string
}

const columns =
  'i.id, i.trigger, i.status, i.duration_ms, i.cpu_ms, i.memory_peak, i.egress_bytes, i.error_message, i.user_id, i.timestamp'

/** Reads a page of records. @throws RuntimeError NO_SUCH_FUNCTION */
export async function listInvocations(
  { database }: Tenant,
  context: RlsContext,
  name: string,
  filter: InvocationFilter,
  after: InvocationPosition | undefined,
  limit: number,
) {
  const [found, page] = await database.read(
    context,
    sql('select 1 from functions where name = $1', name),
    sql(
      `select ${columns} from function_invocations i
       where i.function_id = (select id from functions where name = $1)
         and ($2::jsonb is null or $2::jsonb ? i.status) and ($3::jsonb is null or $3::jsonb ? i.trigger)
         and i.timestamp >= coalesce($4::timestamptz, '-infinity') and i.timestamp < coalesce($5::timestamptz, 'infinity')
         and i.timestamp <= coalesce($6::timestamptz, 'infinity')
         and ($6::timestamptz is null or (i.timestamp, i.id) < ($6::timestamptz, $7::text))
       order by i.timestamp desc, i.id desc limit $8::int`,
      name,
      listed(filter.statuses),
      listed(filter.triggers),
      boundOf(filter.since),
      boundOf(filter.until),
      after?.timestamp ?? null,
      after?.id ?? null,
      limit + 1,
    ),
  )
  if (found?.count !== 1) throw noSuchFunction()
  const rows = page?.rows ?? []
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const next: InvocationPosition | undefined =
    rows.length > limit && last !== undefined
      ? { timestamp: String(last['timestamp']), id: String(last['id']) }
      : undefined
  return { invocations: shown, next }
}
