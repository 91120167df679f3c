// The hosts of tenants' services in the control database, with the memory that they reserve there.
import type { Database } from '../platform/database.ts'
import { leaderRow, ledRow } from '../platform/leader-fence.ts'
import type { Placement } from '../stacks/index.ts'
import type { ServiceNeed } from './choose-hosts.ts'

/** The store of placements. */
export type PlacementStore = ReturnType<typeof createPlacementStore>

/** Creates the store of placements, on the control database. */
export function createPlacementStore(database: Database) {
  return {
    /** Returns the memory that tenants' services reserve, by host. */
    async reserved(regionId: string): Promise<ReadonlyMap<string, number>> {
      const rows = await database.placement.groupBy({
        by: ['hostId'],
        where: { tenant: { regionId } },
        _sum: { memoryBytes: true },
      })
      return new Map(rows.map(({ hostId, _sum: sum }) => [hostId, Number(sum.memoryBytes ?? 0n)]))
    },

    /**
     * Records the hosts of a tenant's services, before anything runs there. Services that have a host keep it.
     * @returns the recorded hosts of all its services
     * @throws LeadershipLost
     */
    async assign(
      tenantId: string,
      needs: readonly ServiceNeed[],
      placement: Placement,
      epoch: bigint,
    ): Promise<Placement> {
      const rows = needs.map(({ service, memoryBytes }) => ({ service, host: placement[service], bytes: memoryBytes }))
      ledRow(
        await database.$queryRaw<{ leads: number }[]>`
          with leader as (${leaderRow(epoch)}),
          tenant as (select id from tenants where id = ${tenantId} for key share),
          placed as (
            insert into placements (tenant_id, service, host_id, memory_bytes)
            select tenant.id, service, host, bytes
            from tenant, jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as wanted (service text, host text, bytes bigint)
            where exists (select from leader)
            on conflict (tenant_id, service) do update set memory_bytes = excluded.memory_bytes)
          select count(*)::int as leads from leader`,
      )
      const found = await database.placement.findMany({ where: { tenantId } })
      return Object.fromEntries(found.map(({ service, hostId }) => [service, hostId]))
    },
  }
}
