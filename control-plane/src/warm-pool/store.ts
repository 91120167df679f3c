// Stores tenants that are made in advance in the control database. Only the leader may write (`LeadershipLost`
// otherwise). Every write increments the generation, so that the reconciler carries it out.
import { randomUUID } from 'node:crypto'
import type { Database } from '../platform/database.ts'
import { ledWrite } from '../platform/led-write.ts'
import type { Seal } from '../platform/seal.ts'
import type { Isolation } from '../stacks/index.ts'
import { recordWanted, sharedDatabaseFor, type SecretKind } from '../tenants/index.ts'

export interface WarmTenant {
  id: string
  /** The tenant's state. `leaving`: it is being removed, and parts of it may still be on the engine. */
  state: 'pending' | 'warm' | 'failed' | 'leaving'
  /** The images' digests; undefined before its services are first created, and for a home in a shared database. */
  images: { postgres: string; runtime: string } | undefined
}

interface NewWarmTenant {
  id: string
  name: string
  plan: string
  region: string
  isolation: Isolation
  secrets: Record<SecretKind, string>
}

/** The tenants that are created in advance. */
export type WarmPoolStore = ReturnType<typeof createWarmPoolStore>

/** Creates the store of tenants made in advance, on the control database. `seal` encrypts their secrets. */
export function createWarmPoolStore(database: Database, seal: Seal, now: () => Date) {
  return {
    /** Lists the tenants of a region's pool, oldest first. */
    async warmTenants(regionId: string, isolation: Isolation): Promise<WarmTenant[]> {
      // A claimed tenant has another name.
      const rows = await database.$queryRaw<
        { id: string; state: WarmTenant['state']; postgres: string | null; runtime: string | null }[]
      >`
        select id, postgres_image as postgres, runtime_image as runtime,
          case when desired = 'deleted' then 'leaving' when status in ('warm', 'failed') then status else 'pending' end as state
        from tenants
        where region_id = ${regionId} and isolation = ${isolation}
          and (desired = 'warm' or (desired = 'deleted' and name = 'warm-' || substr(id, 3)))
        order by created_at, id`
      return rows.map(({ id, state, postgres, runtime }) => ({
        id,
        state,
        images: postgres === null || runtime === null ? undefined : { postgres, runtime },
      }))
    },

    /** Whether clients' creates are in progress in a region. */
    async hasCreates(regionId: string): Promise<boolean> {
      const [row] = await database.$queryRaw<{ has: boolean }[]>`
        select exists (select from operations o join tenants t on t.id = o.tenant_id
          where o.state in ('pending', 'running') and o.kind = 'create' and t.region_id = ${regionId}) as has`
      return row?.has === true
    },

    /** Adds a tenant to the pool. */
    addWarm: (tenant: NewWarmTenant, epoch: bigint): Promise<void> =>
      ledWrite(database, epoch, [`tenant:${tenant.id}`], async (transaction) => {
        const { id, name, plan, region, isolation, secrets } = tenant
        const at = now()
        await transaction.tenant.create({
          data: {
            id,
            name,
            planId: plan,
            regionId: region,
            isolation,
            sharedDatabaseId: await sharedDatabaseFor(transaction, tenant),
            desired: 'warm',
            createdAt: at,
            updatedAt: at,
          },
        })
        await transaction.tenantSecret.createMany({
          data: Object.entries(secrets).map(([kind, text]) => ({
            id: randomUUID(),
            tenantId: id,
            kind,
            sealed: seal.seal(text, `${id}:${kind}`),
            createdAt: at,
          })),
        })
        await recordWanted(transaction, id)
      }),

    /**
     * Removes a tenant and its data.
     * @returns false when it has been claimed
     */
    removeWarm: (id: string, epoch: bigint): Promise<boolean> =>
      ledWrite(database, epoch, [`tenant:${id}`], async (transaction) => {
        const at = now()
        const { count } = await transaction.tenant.updateMany({
          where: { id, desired: 'warm' },
          data: {
            desired: 'deleted',
            status: 'deleting',
            purgeAfter: at,
            deleteRequestedAt: at,
            generation: { increment: 1 },
            updatedAt: at,
          },
        })
        await recordWanted(transaction, id)
        return count > 0
      }),
  }
}
