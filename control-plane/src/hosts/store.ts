// The last measurement of each region's host, and what the tenants of a region reserve. Measurements that hardly differ from the stored
// one stay in the memory of the control plane that leads.
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type { Database } from '../platform/database.ts'
import { leaderRow, ledRow } from '../platform/leader-fence.ts'
import type { HostRecord, Measurement, PlacedService, TenantCounts } from './host.ts'
import { isMaterialChange } from './material-change.ts'

const Amount = Type.Union([Type.Number(), Type.Null()])
const AmountsRow = Type.Object({ total: Amount, free: Amount })
const ReservedRow = Type.Object({ cpuMillis: Type.Number(), memoryBytes: Type.Number() })
const MeasurementRow = Type.Object({
  name: Type.String(),
  apiVersion: Type.Union([Type.String(), Type.Null()]),
  cpuMillis: AmountsRow,
  memoryBytes: AmountsRow,
  diskBytes: AmountsRow,
  reservedByTenants: ReservedRow,
  reservedByPlatform: ReservedRow,
  warnings: Type.Array(Type.String()),
})

interface CountRow {
  region_id: string
  total: number
  dedicated: number
  quota_bytes: bigint
  unlimited: number
}

/** The store of the measurements of hosts. */
export type HostStore = ReturnType<typeof createHostStore>

/** Creates the store of the measurements of hosts, on the control database. */
export function createHostStore(database: Database, now: () => Date) {
  /** The records of this control plane since it leads: the last one of each host, and the one that it has stored. */
  const measured = new Map<string, { last: HostRecord; stored: HostRecord | undefined }>()

  return {
    /**
     * Records a measurement, or why it has failed. The last successful one stays then. It is stored when it differs from the
     * stored one materially.
     * @throws LeadershipLost if it is stored and the epoch is no longer the leader's
     */
    async record(regionId: string, hostId: string, outcome: Measurement | string, epoch: bigint): Promise<void> {
      const key = keyOf({ regionId, hostId })
      const known = measured.get(key)
      const isFailed = typeof outcome === 'string'
      const last: HostRecord = {
        regionId,
        hostId,
        measuredAt: isFailed ? known?.last.measuredAt : now(),
        measurement: isFailed ? known?.last.measurement : outcome,
        error: isFailed ? outcome : undefined,
      }
      if (!isMaterialChange(known?.stored, last)) {
        measured.set(key, { last, stored: known?.stored })
        return
      }
      const error = last.error ?? null
      const measurement = last.measurement === undefined ? null : JSON.stringify(last.measurement)
      const at = last.measuredAt ?? null
      ledRow(
        await database.$queryRaw<{ leads: number }[]>`
          with leader as (${leaderRow(epoch)}),
          recorded as (
            insert into hosts (region_id, host_id, measured_at, measurement, error)
            select ${regionId}, ${hostId}, ${at}, ${measurement}::jsonb, ${error} where exists (select from leader)
            on conflict (region_id, host_id) do update set
              measured_at = coalesce(excluded.measured_at, hosts.measured_at),
              measurement = coalesce(excluded.measurement, hosts.measurement),
              error = excluded.error)
          select count(*)::int as leads from leader`,
      )
      measured.set(key, { last, stored: last })
    },

    /** Evicts what this control plane has measured, because another one may lead from now on. */
    evict(): void {
      measured.clear()
    },

    /** Returns the records of all hosts that were measured once. */
    async records(): Promise<HostRecord[]> {
      const rows = await database.host.findMany()
      return rows.map(({ regionId, hostId, measuredAt, measurement, error }) => {
        const last = measured.get(keyOf({ regionId, hostId }))?.last
        const stored = {
          regionId,
          hostId,
          measuredAt: measuredAt ?? undefined,
          measurement: Value.Check(MeasurementRow, measurement) ? measurement : undefined,
          error: error ?? undefined,
        }
        // After a change of the leader, the first attempt may have failed, so that only the stored measurement is known.
        return last === undefined ? stored : { ...(last.measurement === undefined ? stored : last), error: last.error }
      })
    },

    /** Returns the services that tenants have on the hosts of regions with several, by host and tenant. */
    async placements(regionId: string): Promise<PlacedService[]> {
      const rows = await database.placement.findMany({
        where: { tenant: { regionId } },
        orderBy: [{ tenantId: 'asc' }, { service: 'asc' }],
      })
      return rows.map(({ tenantId, service, hostId, memoryBytes }) => ({
        tenantId,
        service,
        hostId,
        memoryBytes: Number(memoryBytes),
      }))
    },

    /** Returns the tenants of each region, without those that were created in advance. */
    async tenantCounts(): Promise<ReadonlyMap<string, TenantCounts>> {
      const rows = await database.$queryRaw<CountRow[]>`
        select region_id, count(*)::int as total, count(*) filter (where t.isolation <> 'schema-per-tenant')::int as dedicated,
          coalesce(sum(document_bytes + file_bytes), 0)::bigint as quota_bytes,
          count(*) filter (where document_bytes is null or file_bytes is null)::int as unlimited
        from tenants t join plans p on p.id = t.plan_id
        where t.desired <> 'warm'
        group by region_id`
      return new Map(
        rows.map(({ region_id: id, total, dedicated, quota_bytes: quotaBytes, unlimited }) => [
          id,
          { total, dedicated, quotaBytes, unlimited },
        ]),
      )
    },
  }
}

function keyOf({ regionId, hostId }: Pick<HostRecord, 'regionId' | 'hostId'>): string {
  return `${regionId}.${hostId}`
}
