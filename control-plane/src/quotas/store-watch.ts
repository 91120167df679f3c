// Reads how near tenants are to their quotas from the control database: requests from leases, connections from slots,
// bytes from the last readings of homes.
import { type QuotaState, onceKey, percents } from './quota-warning.ts'
import type { Database } from '../platform/database.ts'
import { emitOperatorEvent, type OperatorEvent } from '../webhooks/index.ts'

interface Row {
  tenant_id: string
  resource: QuotaState['resource']
  used: bigint
  limit: bigint
}

/** Reads and reports quotas that are nearly used up. */
export type QuotaWatchStore = ReturnType<typeof createQuotaWatchStore>

/** Creates the reader of the use of quotas, on the control database. */
export function createQuotaWatchStore(database: Database, now: () => Date) {
  return {
    /**
     * Stores which quotas are used to 80 % or more, in place of those of the last call. `month` is its first instant, UTC.
     */
    async refresh(month: Date): Promise<void> {
      const first = month.toISOString().slice(0, 10)
      await database.$executeRaw`
        with leased as (select tenant_id, sum(used)::bigint as used from request_leases where month = ${first}::date group by tenant_id),
        near as materialized (
          select t.id as tenant_id, s.resource, s.used, s.quota
          from tenants t join plans p on p.id = t.plan_id
          left join leased l on l.tenant_id = t.id
          left join home_readings h on h.tenant_id = t.id
          left join connection_budgets c on c.tenant_id = t.id and c.peak_month = ${first}::date and c.peak_limit = p.realtime_connections
          cross join lateral (values
            ('api_requests', l.used, p.requests_per_month), ('documents', h.document_bytes, p.document_bytes),
            ('files', h.file_bytes, p.file_bytes),
            ('realtime_connections', c.peak::bigint, p.realtime_connections::bigint)
          ) s(resource, used, quota)
          where t.desired <> 'deleted' and s.quota is not null and s.used * 100 >= s.quota * ${percents[0]}::int),
        removed as (delete from near_quotas o where not exists (
          select from near n where n.tenant_id = o.tenant_id and n.resource = o.resource))
        insert into near_quotas as o (tenant_id, resource, used, quota) select * from near order by tenant_id, resource
        on conflict (tenant_id, resource) do update set used = excluded.used, quota = excluded.quota
          where (o.used, o.quota) <> (excluded.used, excluded.quota)`
    },

    /** Returns the stored quotas that were not reported in the month. */
    async unreported(month: Date): Promise<{ quota: QuotaState; percent: (typeof percents)[number] }[]> {
      const first = month.toISOString().slice(0, 10)
      const rows = await database.$queryRaw<Row[]>`
        select tenant_id, resource, used, quota as limit from near_quotas order by tenant_id, resource`
      const reached = rows.flatMap(({ tenant_id: tenantId, resource, used, limit }) =>
        percents
          .filter((percent) => used * 100n >= limit * BigInt(percent))
          .map((percent) => ({ quota: { tenantId, resource, used, limit }, percent })),
      )
      const keys = reached.map(({ quota, percent }) =>
        onceKey(quota.tenantId, quota.resource, percent, first.slice(0, 7)),
      )
      const reported = await database.$queryRaw<
        { once: string }[]
      >`select once from operator_events where once = any(${keys})`
      const known = new Set(reported.map(({ once }) => once))
      return reached.filter((_, nth) => !known.has(keys[nth] ?? ''))
    },

    /**
     * Reports a quota.
     * @returns false when it was reported already
     */
    report: (event: OperatorEvent, once: string): Promise<boolean> => emitOperatorEvent(database, event, now(), once),

    /** Deletes the leases of months that ended before that time. */
    async evict(before: Date): Promise<void> {
      const first = before.toISOString().slice(0, 10)
      await database.$executeRaw`delete from request_leases where month < ${first}::date`
      await database.$executeRaw`delete from request_budgets where month < ${first}::date`
      await database.$executeRaw`
        delete from lease_holders h where ended and seen_at < ${before}
          and not exists (select from request_leases l where l.source = h.source and l.boot = h.boot)`
    },
  }
}
