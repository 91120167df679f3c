// Decides which tenants of the pool to remove, and how many to make. Pure.
import type { WarmTenant } from './store.ts'

interface PoolPlan {
  remove: string[]
  make: number
}

interface PoolWanted {
  size: number
  /**
   * The images of new tenants; undefined if they have none or the engine does not report them, so that no tenant counts as
   * outdated.
   */
  images: WarmTenant['images']
  /** Whether new tenants may be begun. False, for example, shortly after a failure. */
  mayMake: boolean
}

/**
 * The maximum number of tenants that are being made or removed at the same time, so that customers' operations come
 * first.
 */
export const maxMoving = 2

/**
 * Plans the pool.
 * @param tenants all tenants of the pool, oldest first
 */
export function planPool(tenants: readonly WarmTenant[], { size, images, mayMake }: PoolWanted): PoolPlan {
  const failed = tenants.filter(({ state }) => state === 'failed')
  const good = tenants.filter(({ state }) => state === 'warm' || state === 'pending')
  const worth = (tenant: WarmTenant) => (tenant.state === 'warm' ? 2 : 0) + (isOutdated(tenant, images) ? 0 : 1)
  const retained = good.toSorted((a, b) => worth(b) - worth(a))
  const surplus = retained.splice(size)
  // A tenant that is being removed still takes space on the engine.
  const moving = tenants.filter(({ state }) => state === 'pending' || state === 'leaving').length + failed.length
  const outdated =
    retained.length === size && moving === 0 ? retained.filter((tenant) => isOutdated(tenant, images)).slice(0, 1) : []
  return {
    remove: [...failed, ...surplus, ...outdated].map(({ id }) => id),
    make: mayMake ? Math.max(0, Math.min(size - retained.length, maxMoving - moving)) : 0,
  }
}

function isOutdated(tenant: WarmTenant, images: WarmTenant['images']): boolean {
  if (tenant.images === undefined || images === undefined) return false
  return tenant.images.postgres !== images.postgres || tenant.images.runtime !== images.runtime
}
