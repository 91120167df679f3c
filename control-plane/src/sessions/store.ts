// The watchdog's state in the control database: offences of tenants, and why SQL logins are closed.
import type { Database } from '../platform/database.ts'
import { leaderRow, ledRow } from '../platform/leader-fence.ts'
import type { SessionWatchStore } from './jobs.ts'
import type { SqlLoginStore } from './jobs-logins.ts'
import { blamelessMs } from './judge-sessions.ts'

interface OffenceRow {
  tenant_id: string
  strikes: number
  struck_at: Date
  closed_until: Date | null
}

/** Creates the watchdog's store on the control database. */
export function createSessionWatchStore(database: Database, now: () => Date): SessionWatchStore & SqlLoginStore {
  return {
    async plansOf(tenantIds) {
      const rows = await database.$queryRaw<{ id: string; plan_id: string }[]>`
        select id, plan_id from tenants where id = any (${[...tenantIds]})`
      return new Map(rows.map(({ id, plan_id: plan }) => [id, plan]))
    },

    async offences(regionId) {
      const rows = await database.$queryRaw<OffenceRow[]>`
        select tenant_id, strikes, struck_at, closed_until from sql_logins join tenants on tenants.id = tenant_id
        where region_id = ${regionId} and struck_at is not null`
      return new Map(
        rows.map(({ tenant_id: tenantId, strikes, struck_at: struckAt, closed_until: closedUntil }) => [
          tenantId,
          { strikes, struckAt: struckAt.getTime(), closedUntil: closedUntil?.getTime() ?? 0 },
        ]),
      )
    },

    async report({ tenantId, offences, condition, action, once }, epoch) {
      const { strikes, struckAt, closedUntil } = offences
      const until = closedUntil === 0 ? null : new Date(closedUntil)
      const rows = await database.$queryRaw<{ leads: number }[]>`
        with leader as (${leaderRow(epoch)}),
        changed as (
          update tenants set conditions = coalesce(
              (select jsonb_agg(one) from jsonb_array_elements(conditions) as one where one ->> 'type' <> 'Sql'), '[]')
                || ${JSON.stringify([condition])}::jsonb
          where id = ${tenantId} and exists (select from leader)
          returning id, name, plan_id, region_id),
        saved as (
          insert into sql_logins (tenant_id, strikes, struck_at, closed_until)
          select id, ${strikes}::int, ${new Date(struckAt)}, ${until} from changed
          on conflict (tenant_id) do update
          set strikes = excluded.strikes, struck_at = excluded.struck_at, closed_until = excluded.closed_until),
        sent as (
          insert into operator_events (id, type, tenant_id, once, data, at)
          select gen_random_uuid(), 'tenant.sql_limited', id, ${once},
            jsonb_build_object('tenant_id', id, 'name', name, 'plan', plan_id, 'region', region_id,
              'action', ${action}::text, 'reason', ${condition.reason}::text, 'message', ${condition.message}::text,
              'closed_until', ${action === 'closed' ? (until?.toISOString() ?? null) : null}::text), ${now()}
          from changed on conflict (once) do nothing)
        select count(*)::int as leads from leader`
      ledRow(rows)
    },

    async closedLogins(regionId) {
      const rows = await database.$queryRaw<{ id: string }[]>`
        select id from tenants join (
            select id from tenants where desired in ('suspended', 'deleted')
            union select tenant_id from sql_logins where closed_until > ${now()} or is_full) as closed using (id)
        where region_id = ${regionId} and isolation = 'schema-per-tenant'`
      return new Set(rows.map(({ id }) => id))
    },

    async openLogins(regionId, tenantIds) {
      const rows = await database.$queryRaw<{ id: string }[]>`
        select id from tenants left join sql_logins on tenant_id = id
        where id = any (${[...tenantIds]}) and region_id = ${regionId} and isolation = 'schema-per-tenant' and desired = 'active'
          and coalesce(closed_until, ${now()}) <= ${now()} and is_full is not true`
      return rows.map(({ id }) => id)
    },

    async reportOpen(regionId, epoch) {
      const rows = await database.$queryRaw<{ leads: number }[]>`
        with leader as (${leaderRow(epoch)}),
        opened as (
          select tenant_id, greatest(struck_at, closed_until) < ${new Date(now().getTime() - blamelessMs)} as is_old
          from sql_logins join tenants on id = tenant_id
          where region_id = ${regionId} and coalesce(closed_until, struck_at) <= ${now()} and not is_full
            and exists (select from leader)),
        changed as (
          update tenants set conditions = coalesce(
            (select jsonb_agg(case when one ->> 'type' = 'Sql' then one || '{"status":"True"}' else one end order by position)
              from jsonb_array_elements(conditions) with ordinality as given (one, position)
              where not (one ->> 'type' = 'Sql' and is_old)), '[]')
          from opened where id = tenant_id
            and (is_old or conditions @> '[{"type":"Sql","status":"False"}]')),
        forgotten as (delete from sql_logins using opened where sql_logins.tenant_id = opened.tenant_id and is_old)
        select count(*)::int as leads from leader`
      ledRow(rows)
    },
  }
}
