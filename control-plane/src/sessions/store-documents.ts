// What the control database stores about tenants with too many documents.
import type { Database } from '../platform/database.ts'
import { leaderRow, ledRow } from '../platform/leader-fence.ts'
import type { DocumentStore } from './jobs-documents.ts'
import { documentsReason } from './judge-documents.ts'

interface MeasuredRow {
  id: string
  database: string
  limit_bytes: bigint | null
  is_full: boolean
}

/** Creates the store of the documents' watch on the control database. */
export function createDocumentStore(database: Database, now: () => Date): DocumentStore {
  return {
    async measured(regionId, tenantIds) {
      const rows = await database.$queryRaw<MeasuredRow[]>`
        select tenants.id, shared_databases.name as database, document_bytes as limit_bytes, coalesce(is_full, false) as is_full
        from (select unnest(${[...tenantIds]}::text[]) as id union select tenant_id from sql_logins where is_full) as wanted
          join tenants using (id) join shared_databases on shared_databases.id = shared_database_id
          join plans on plans.id = plan_id left join sql_logins on tenant_id = tenants.id
        where tenants.region_id = ${regionId} and (document_bytes is not null or is_full)`
      return rows.map(({ id, database: name, limit_bytes: limit, is_full: isFull }) => ({
        id,
        database: name,
        limitBytes: limit === null ? undefined : Number(limit),
        isFull,
      }))
    },

    async reportDocuments(tenantId, condition, once, epoch) {
      const added = JSON.stringify(condition === undefined ? [] : [condition])
      const isFull = condition !== undefined
      const rows = await database.$queryRaw<{ leads: number }[]>`
        with leader as (${leaderRow(epoch)}),
        changed as (
          update tenants set conditions = coalesce(
              (select jsonb_agg(one) from jsonb_array_elements(conditions) as one
                where one ->> 'type' <> 'Sql' or (not ${isFull}::boolean and one ->> 'reason' <> ${documentsReason})), '[]')
                || ${added}::jsonb
          where id = ${tenantId} and exists (select from leader)
          returning id, name, plan_id, region_id),
        saved as (
          insert into sql_logins (tenant_id, is_full) select id, ${isFull}::boolean from changed
          on conflict (tenant_id) do update set is_full = excluded.is_full),
        sent as (
          insert into operator_events (id, type, tenant_id, once, data, at)
          select gen_random_uuid(), 'tenant.sql_limited', id, ${once},
            jsonb_build_object('tenant_id', id, 'name', name, 'plan', plan_id, 'region', region_id, 'action', 'closed',
              'reason', ${condition?.reason ?? null}::text, 'message', ${condition?.message ?? null}::text, 'closed_until', null),
            ${now()}
          from changed where ${isFull}::boolean on conflict (once) do nothing)
        select count(*)::int as leads from leader`
      ledRow(rows)
    },
  }
}
