// Deletes old records of runs, in batches. What they contributed to the usage remains counted.
import type { Tenant } from '../../tenancy/tenant.ts'

export interface InvocationBounds {
  /** The number of days after which records are deleted; null for never. */
  days: number | null
  /** The maximum number of records. Older ones are deleted, except those of the last day. Null is unlimited. */
  records: number | null
  /** The maximum number of records that one transaction deletes. */
  batch: number
}

/** The bounds of a tenant whose manifest does not state its plan's. */
export const invocationBounds: InvocationBounds = { days: 30, records: 100_000, batch: 10_000 }

/** Returns the bounds of the tenant's plan. */
function boundsOf({ limits }: Tenant): InvocationBounds {
  const { invocation_days: days = invocationBounds.days, invocations: records = invocationBounds.records } = limits
  return { ...invocationBounds, days, records }
}

/**
 * Deletes the records of a tenant's runs beyond the limits.
 * @returns the number of deleted records
 */
export async function trimInvocations(
  tenant: Tenant,
  { days, records, batch }: InvocationBounds = boundsOf(tenant),
): Promise<number> {
  if (days === null && records === null) return 0
  let removed = 0
  for (;;) {
    const { count } = await tenant.database.query(
      { role: 'service', reason: 'old records of invocations' },
      `delete from function_invocations where id = any(array(
         select id from function_invocations where timestamp < now() - interval '1 day' and timestamp <= greatest(
           now() - make_interval(days => $1::int),
           case when $2::bigint is null then null else
             (select timestamp from function_invocations order by timestamp desc offset $2::bigint limit 1) end)
         limit $3::int))`,
      days,
      records,
      batch,
    )
    removed += count
    if (count < batch) return removed
  }
}
