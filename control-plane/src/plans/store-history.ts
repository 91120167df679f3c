// Reads plan periods from the control database. A trigger of the tenants' table writes them.
import type { PlanHistory, PlanPeriod } from './plan-history.ts'
import type { Database } from '../platform/database.ts'

/** Creates the reader of plan periods, on the control database. */
export function createPlanHistory(database: Database): PlanHistory {
  const periodsOf: PlanHistory['periodsOf'] = async (tenantIds, from, to) => {
    const rows = await database.$queryRaw<
      { tenant_id: string; plan: string; weaker_isolation: string | null; since: Date; until: Date }[]
    >`
      select tenant_id, plan_id as plan, weaker_isolation, greatest(since, ${from}) as since,
        least(coalesce(until, 'infinity'), ${to}) as until
      from plan_periods
      where tenant_id = any(${[...tenantIds]}) and greatest(since, ${from}) < least(coalesce(until, 'infinity'), ${to})
      order by tenant_id, plan_periods.since`
    const periods = new Map<string, PlanPeriod[]>()
    for (const { tenant_id: id, plan, weaker_isolation: weakerIsolation, since, until } of rows) {
      const period: PlanPeriod = { plan, ...(weakerIsolation === null ? {} : { weakerIsolation }), since, until }
      const its = periods.get(id)
      if (its === undefined) periods.set(id, [period])
      else its.push(period)
    }
    return periods
  }

  return {
    periodsOf,
    periods: async (tenantId, from, to) => (await periodsOf([tenantId], from, to)).get(tenantId) ?? [],

    async tenants(from, to, after, limit) {
      const rows = await database.$queryRaw<{ tenant_id: string }[]>`
        select distinct tenant_id from plan_periods
        where tenant_id > ${after} and greatest(since, ${from}) < least(coalesce(until, 'infinity'), ${to})
        order by tenant_id limit ${limit}`
      return rows.map(({ tenant_id: id }) => id)
    },
  }
}
