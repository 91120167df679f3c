// The recorded conditions of the regions, so that each control plane shows what the leading one has observed.
import type { Database } from '../platform/database.ts'
import { leaderRow, ledRow } from '../platform/leader-fence.ts'
import type { RegionCondition } from '../regions/index.ts'

/** The recorded conditions. */
export type RegionConditionStore = ReturnType<typeof createRegionConditionStore>

/** Creates the store of the recorded conditions, on the control database. */
export function createRegionConditionStore(database: Database) {
  return {
    /** Records all conditions of a region. @throws LeadershipLost */
    async record(region: string, conditions: readonly RegionCondition[], epoch: bigint): Promise<void> {
      const types = conditions.map(({ type }) => type)
      ledRow(
        await database.$queryRaw<{ leads: number }[]>`
          with leader as (${leaderRow(epoch)}),
          removed as (
            delete from region_conditions
            where region_id = ${region} and type <> all(${types}) and exists (select from leader)),
          recorded as (
            insert into region_conditions (region_id, type, status, reason, message, observed_at)
            select ${region}, type, status, reason, message, observed_at
            from jsonb_to_recordset(${JSON.stringify(conditions)}::jsonb)
              as listed(type text, status text, reason text, message text, observed_at timestamptz)
            where exists (select from leader)
            on conflict (region_id, type) do update set
              status = excluded.status, reason = excluded.reason, message = excluded.message,
              observed_at = excluded.observed_at)
          select count(*)::int as leads from leader`,
      )
    },

    /** Returns the recorded conditions of all regions, by region, `Ready` first. */
    async all(): Promise<Map<string, RegionCondition[]>> {
      const rows = await database.regionCondition.findMany({ orderBy: { type: 'desc' } })
      const byRegion = Map.groupBy(rows, ({ regionId }) => regionId)
      const shown = ({ type, status, reason, message, observedAt }: (typeof rows)[number]): RegionCondition => ({
        type: type === 'Ready' ? 'Ready' : 'Encrypted',
        status: status === 'True' ? 'True' : 'False',
        reason,
        message,
        observed_at: observedAt.toISOString(),
      })
      return new Map([...byRegion].map(([region, ones]) => [region, ones.map(shown)]))
    },
  }
}
