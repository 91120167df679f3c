// Reads plan periods from the control database. A trigger of the tenants' table writes them.
import type { PlanPeriod } from './plan-period.ts'
import type { Database } from '../platform/database.ts'

/** Reads the plan periods of tenants, which divide a month on invoices. */
export type PlanHistory = ReturnType<typeof createPlanHistory>

/** Creates the reader of plan periods, on the control database. */
export function createPlanHistory(database: Database) {
  const periodsOf = async (
    tenantIds: readonly string[],
    from: Date,
    to: Date,
  ): Promise<ReadonlyMap<string, PlanPeriod[]>> => {
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
    /** Returns `periods` for many tenants. Those without any are left out. */
    periodsOf,

    /**
     * Returns the tenant's periods within [`from`, `to`), limited to it, oldest first. None is empty and no two overlap.
     * There is none before the tenant's creation or after the request for its deletion. Deleted tenants have theirs too.
     */
    periods: async (tenantId: string, from: Date, to: Date): Promise<PlanPeriod[]> =>
      (await periodsOf([tenantId], from, to)).get(tenantId) ?? [],

    /** Returns at most `limit` ids above `after`, in order, of tenants with a period within [`from`, `to`). */
    async tenants(from: Date, to: Date, after: string, limit: number): Promise<string[]> {
      const rows = await database.$queryRaw<{ tenant_id: string }[]>`
        select distinct tenant_id from plan_periods
        where tenant_id > ${after} and greatest(since, ${from}) < least(coalesce(until, 'infinity'), ${to})
        order by tenant_id limit ${limit}`
      return rows.map(({ tenant_id: id }) => id)
    },
  }
}
