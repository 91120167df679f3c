// The store of warm pool and pausing on the control database.
import { randomUUID } from 'node:crypto'
import type { HousekeepingStore, WarmTenant } from '../housekeeping/housekeeping-store.ts'
import type { Seal } from '../keys/seal.ts'
import type { Database } from './database.ts'
import { ledWrite, raise, tellWanted } from './led-write.ts'

export function createHousekeepingStore(database: Database, seal: Seal, now: () => Date): HousekeepingStore {
  return {
    async warmTenants(regionId) {
      // One that was claimed has another name.
      const rows = await database.$queryRaw<{ id: string; state: WarmTenant['state']; postgres: string | null; runtime: string | null }[]>`
        select id, postgres_image as postgres, runtime_image as runtime,
          case when desired = 'deleted' then 'leaving' when status in ('warm', 'failed') then status else 'pending' end as state
        from tenants
        where region_id = ${regionId} and (desired = 'warm' or (desired = 'deleted' and name = 'warm-' || substr(id, 3)))
        order by created_at, id`
      return rows.map(({ id, state, postgres, runtime }) => ({
        id, state, images: postgres === null || runtime === null ? undefined : { postgres, runtime },
      }))
    },

    addWarm: ({ id, name, plan, region, isolation, secrets }, epoch) =>
      ledWrite(database, epoch, async (transaction) => {
        const at = now()
        await transaction.tenant.create({ data: { id, name, planId: plan, regionId: region, isolation, desired: 'warm', createdAt: at, updatedAt: at } })
        await transaction.tenantSecret.createMany({
          data: Object.entries(secrets).map(([kind, text]) => ({ id: randomUUID(), tenantId: id, kind, sealed: seal.seal(text, `${id}:${kind}`), createdAt: at })),
        })
        await tellWanted(transaction, id)
      }),

    removeWarm: (id, epoch) =>
      ledWrite(database, epoch, async (transaction) => {
        const at = now()
        const { count } = await transaction.tenant.updateMany({
          where: { id, desired: 'warm' },
          data: { desired: 'deleted', status: 'deleting', purgeAfter: at, deleteRequestedAt: at, generation: { increment: 1 }, updatedAt: at },
        })
        await tellWanted(transaction, id)
        return count > 0
      }),

    async runningTenants(regionId) {
      const rows = await database.$queryRaw<{ id: string; generation: number; pause_after_seconds: number | null; updated_at: Date }[]>`
        select id, generation, pause_after_seconds, updated_at from tenants
        where region_id = ${regionId} and isolation <> 'schema-per-tenant' and desired = 'active' and status = 'ready'
          and observed_generation = generation
          and not exists (select from operations where tenant_id = tenants.id and state in ('pending', 'running'))
        order by id`
      return rows.map(({ id, generation, pause_after_seconds: seconds, updated_at: updatedAt }) => ({
        id, generation, pauseAfterSeconds: seconds ?? undefined, updatedAt,
      }))
    },

    pause: (id, generation, epoch) =>
      ledWrite(database, epoch, async (transaction) => {
        const unchanged = await transaction.tenant.count({ where: { id, generation, desired: 'active', status: 'ready' } })
        const busy = await transaction.operation.count({ where: { tenantId: id, state: { in: ['pending', 'running'] } } })
        if (unchanged === 0 || busy > 0) return false
        await raise(transaction, id, 'pause', { desired: 'paused' }, now())
        return true
      }),
  }
}
