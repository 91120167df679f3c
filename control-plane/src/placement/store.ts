// The hosts of tenants' services in the control database, with the memory that they reserve there.
import PQueue from 'p-queue'
import type { Database } from '../platform/database.ts'
import { leaderRow, ledRow } from '../platform/leader-fence.ts'
import type { Placement } from '../stacks/index.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import type { ServiceNeed } from './choose-hosts.ts'
import type { HostState } from './host-state.ts'
import type { Reserved } from './refit-hosts.ts'

/** The store of placements. */
export type PlacementStore = ReturnType<typeof createPlacementStore>

/** Creates the store of placements, on the control database. */
export function createPlacementStore(database: Database) {
  const turns = new Map<string, PQueue>()

  return {
    /** Runs the works of a region one after the other, so that each sees what the one before has reserved. */
    inTurn<T>(regionId: string, work: () => Promise<T>): Promise<T> {
      const queue = turns.get(regionId) ?? new PQueue({ concurrency: 1 })
      turns.set(regionId, queue)
      return queue.add(work)
    },

    /** Returns the states of the hosts that receive no services. */
    async states(regionId: string): Promise<ReadonlyMap<string, HostState>> {
      const rows = await database.hostState.findMany({ where: { regionId } })
      return new Map(rows.map(({ hostId, state }) => [hostId, state === 'lost' ? 'lost' : 'draining']))
    },

    /** Sets the state of a host on request, and wakes the tenants with services there, or all that could use an active one. */
    async setState(
      regionId: string,
      hostId: string,
      state: HostState,
      { transaction, audit }: RecordedWrite,
    ): Promise<void> {
      const key = { regionId_hostId: { regionId, hostId } }
      if (state === 'active') await transaction.hostState.deleteMany({ where: { regionId, hostId } })
      else {
        const set = { state, isAutomatic: false }
        await transaction.hostState.upsert({ where: key, create: { regionId, hostId, ...set }, update: set })
      }
      await transaction.$executeRaw`
        insert into changes (kind, tenant_id, transaction_id)
          select distinct 'wanted', p.tenant_id, pg_current_xact_id()::text::bigint
          from placements p join tenants t on t.id = p.tenant_id
          where t.region_id = ${regionId} and (p.host_id = ${hostId} or ${state === 'active'})`
      audit({ action: 'host.state', target: hostId, detail: { region: regionId, state } })
    },

    /**
     * Records as the leader that a host is lost, or that a host which the leader has recorded as lost responds again. A state that
     * an operator has set stays.
     * @throws LeadershipLost
     */
    async noteLost(regionId: string, hostId: string, isLost: boolean, epoch: bigint): Promise<void> {
      ledRow(
        await database.$queryRaw<{ leads: number }[]>`
          with leader as (${leaderRow(epoch)}),
          lost as (
            insert into host_states (region_id, host_id, state, is_automatic)
            select ${regionId}, ${hostId}, 'lost', true where ${isLost} and exists (select from leader)
            on conflict do nothing),
          returned as (
            delete from host_states where region_id = ${regionId} and host_id = ${hostId} and is_automatic
              and not ${isLost} and exists (select from leader))
          select count(*)::int as leads from leader`,
      )
    },

    /** Returns the memory that tenants' services reserve, by host. */
    async reserved(regionId: string): Promise<ReadonlyMap<string, number>> {
      const rows = await database.placement.groupBy({
        by: ['hostId'],
        where: { tenant: { regionId } },
        _sum: { memoryBytes: true },
      })
      return new Map(rows.map(({ hostId, _sum: sum }) => [hostId, Number(sum.memoryBytes ?? 0n)]))
    },

    /** Returns the hosts of a tenant's services, and what these reserve there. */
    async of(tenantId: string): Promise<{ placement: Placement; reserved: Reserved }> {
      const rows = await database.placement.findMany({ where: { tenantId } })
      return placementOf(rows)
    },

    /**
     * Records the hosts of a tenant's services, before anything runs there. The names of a single database's services contain its host, so
     * that gateways and runtimes receive them again.
     * @param isReplacement whether the former hosts are recorded, too, until `endReplacement`
     * @returns the recorded hosts of all its services
     * @throws LeadershipLost
     */
    async assign(
      tenantId: string,
      needs: readonly ServiceNeed[],
      placement: Placement,
      epoch: bigint,
      isReplacement = false,
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
            on conflict (tenant_id, service) do update set memory_bytes = excluded.memory_bytes, host_id = excluded.host_id,
              former_host_id = coalesce(placements.former_host_id, case when ${isReplacement} then placements.host_id end)),
          published as (
            insert into changes (kind, tenant_id, transaction_id)
            select 'published', tenant.id, pg_current_xact_id()::text::bigint from tenant where exists (select from leader))
          select count(*)::int as leads from leader`,
      )
      return placementOf(await database.placement.findMany({ where: { tenantId } })).placement
    },

    /**
     * Ends the replacement of a tenant's hosts. @param isDone whether the services stay on the new ones; otherwise, the former ones are
     * recorded again @throws LeadershipLost
     */
    async endReplacement(tenantId: string, isDone: boolean, epoch: bigint): Promise<void> {
      ledRow(
        await database.$queryRaw<{ leads: number }[]>`
          with leader as (${leaderRow(epoch)}),
          placed as (
            update placements
            set host_id = case when ${isDone} then host_id else former_host_id end, former_host_id = null
            where tenant_id = ${tenantId} and former_host_id is not null and exists (select from leader)
            returning tenant_id),
          published as (
            insert into changes (kind, tenant_id, transaction_id)
            select distinct 'published', tenant_id, pg_current_xact_id()::text::bigint from placed)
          select count(*)::int as leads from leader`,
      )
    },
  }
}

/** Converts rows of one tenant to the hosts of its services, and what these reserve there. */
export function placementOf(rows: readonly { service: string; hostId: string; memoryBytes: bigint | number }[]): {
  placement: Placement
  reserved: Reserved
} {
  return {
    placement: Object.fromEntries(rows.map(({ service, hostId }) => [service, hostId])),
    reserved: Object.fromEntries(rows.map(({ service, memoryBytes }) => [service, Number(memoryBytes)])),
  }
}
