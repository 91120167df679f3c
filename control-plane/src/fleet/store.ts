// Reads from the control database which tenants need attention, and counts tenants.
import { Prisma } from '../../../prisma/client/client.ts'
import { decodeCursor, toPage } from '../platform/cursor.ts'
import type { Database } from '../platform/database.ts'
import type { Page, PageRequest } from '../platform/page.ts'
import { attentionCodes, type AttentionCode, type FleetSummary, type Reason, type TenantInNeed } from './attention.ts'

interface ReasonRow {
  tenant_id: string
  code: AttentionCode
  message: string
  since: Date | null
}

type TenantRow = Omit<TenantInNeed, 'reasons'>

interface FleetStoreOptions {
  database: Database
  now: () => Date
  /** Days in which each tenant's newest backup is verified once; 0 if backups are not verified by schedule. */
  proofDays: number
}

const tenantIds = /^t_[0-9a-f]{20}$/

/** Reads the state of all tenants together. */
export type FleetStore = ReturnType<typeof createFleetStore>

/** Creates the reader of the state of all tenants, on the control database. */
export function createFleetStore({ database, now, proofDays }: FleetStoreOptions) {
  /**
   * Returns the query for all reasons of all tenants. Each part reads an index that contains only the few tenants that it is
   * about. The condition on `conditions` is that of the index `tenants_attention_idx`.
   */
  const reasons = (): Prisma.Sql => {
    const lossSince = new Date(now().getTime() - 7 * 86_400_000)
    // One day more than the schedule allows, because a proof takes time.
    const provenSince = new Date(now().getTime() - (proofDays + 1) * 86_400_000)
    return Prisma.sql`
      select id as tenant_id, 'Failed' as code, coalesce(reason, '') as message, null::timestamptz as since
      from tenants where status = 'failed'
      union all
      select t.id,
        case c ->> 'type' when 'Backup' then 'ProofFailed' when 'Quorum' then 'Cluster' when 'Replicating' then 'Cluster'
          else c ->> 'type' end,
        c ->> 'message', (c ->> 'observed_at')::timestamptz
      from tenants t cross join lateral jsonb_array_elements(t.conditions) as c
      where t.conditions @? '$[*] ? (@.type == "Drift" || @.type == "Disk" || @.type == "Loss" ||
          ((@.type == "Backup" || @.type == "Sql" || @.type == "Quorum" || @.type == "Replicating") && @.status == "False"))'
        and t.desired not in ('deleted', 'warm')
        and (c ->> 'type' in ('Drift', 'Disk')
          or c ->> 'type' = 'Loss' and (c ->> 'observed_at')::timestamptz > ${lossSince}
          or c ->> 'type' in ('Backup', 'Sql', 'Quorum', 'Replicating') and c ->> 'status' = 'False')
      union all
      select id, 'NotProven', 'The last verified backup is too old.', proven_at
      from tenants
      where proof_seen_at is not null and desired in ('active', 'suspended', 'paused') and ${proofDays}::int > 0
        and proven_at < ${provenSince}
      union all
      select id, 'NotProven', 'No backup was ever verified.', null
      from tenants t
      where proof_seen_at is not null and desired in ('active', 'suspended', 'paused') and ${proofDays}::int > 0
        and proven_at is null and exists (
          select from backups b where b.tenant_id = t.id and b.state = 'complete' and b.created_at < ${provenSince})
      union all
      select q.tenant_id, 'Quota',
        case q.resource when 'api_requests' then 'API requests' when 'realtime_connections' then 'connections' else q.resource end
          || ': ' || q.used || ' of ' || q.quota || ' (' || q.used * 100 / greatest(q.quota, 1) || ' %)', null
      from near_quotas q join tenants t on t.id = q.tenant_id
      where t.desired not in ('deleted', 'warm')`
  }

  return {
    /** Counts tenants by observed status, and by reason for attention. */
    async summary(): Promise<FleetSummary> {
      const [statuses, counts] = await Promise.all([
        database.$queryRaw<{ status: string; count: number }[]>`
          select status, count(*)::int as count from tenants where desired <> 'warm' and status <> 'warm' group by status`,
        database.$queryRaw<{ code: AttentionCode; count: number }[]>`
          select code, count(distinct tenant_id)::int as count from (${reasons()}) r group by code`,
      ])
      const byCode = new Map(counts.map(({ code, count }) => [code, count]))
      return {
        total: statuses.reduce((sum, { count }) => sum + count, 0),
        byStatus: Object.fromEntries(statuses.map(({ status, count }) => [status, count])),
        attention: Object.fromEntries(attentionCodes.map((code) => [code, byCode.get(code) ?? 0])) as Record<
          AttentionCode,
          number
        >,
      }
    },

    /** Lists tenants that need attention for any reason, or for the given one, the oldest first. */
    async inNeed(code: AttentionCode | undefined, { limit, cursor }: PageRequest): Promise<Page<TenantInNeed>> {
      const position = cursor === undefined ? undefined : decodeCursor(cursor, tenantIds)
      const rows = await database.$queryRaw<TenantRow[]>`
        select id, name, plan_id as plan, region_id as region, status, created_at as "createdAt"
        from tenants
        where id in (select tenant_id from (${reasons()}) r
            ${code === undefined ? Prisma.empty : Prisma.sql`where code = ${code}`})
          ${position === undefined ? Prisma.empty : Prisma.sql`and (created_at, id) > (${position.createdAt}, ${position.id})`}
        order by created_at, id
        limit ${limit + 1}`
      const of = await database.$queryRaw<ReasonRow[]>`
        select * from (${reasons()}) r where tenant_id = any(${rows.map(({ id }) => id)}::text[])`
      const byTenant = Map.groupBy(of, ({ tenant_id: id }) => id)
      return toPage(rows, limit, (row) => ({
        ...row,
        reasons: (byTenant.get(row.id) ?? []).map(toReason).sort(byUrgency),
      }))
    },
  }
}

function toReason({ code, message, since }: ReasonRow): Reason {
  return { code, message, since: since ?? undefined }
}

function byUrgency(a: Reason, b: Reason): number {
  return attentionCodes.indexOf(a.code) - attentionCodes.indexOf(b.code)
}
