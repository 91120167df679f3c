// Plan periods of the control database; a trigger of the tenants' table writes them.
import type { PlanHistory } from '../plans/plan-history.ts'
import type { Database } from './database.ts'

export function createPlanHistory(database: Database): PlanHistory {
  return {
    async periods(tenantId, from, to) {
      return database.$queryRaw<{ plan: string; since: Date; until: Date }[]>`
        select plan_id as plan, greatest(since, ${from}) as since, least(coalesce(until, 'infinity'), ${to}) as until
        from plan_periods
        where tenant_id = ${tenantId} and greatest(since, ${from}) < least(coalesce(until, 'infinity'), ${to})
        order by plan_periods.since`
    },

    async tenants(from, to, after, limit) {
      const rows = await database.$queryRaw<{ tenant_id: string }[]>`
        select distinct tenant_id from plan_periods
        where tenant_id > ${after} and greatest(since, ${from}) < least(coalesce(until, 'infinity'), ${to})
        order by tenant_id limit ${limit}`
      return rows.map(({ tenant_id: id }) => id)
    },
  }
}
