// Which tenants made in advance a region should lose, and how many it should get. Pure.
import type { WarmTenant } from './store.ts'

interface PoolPlan {
  remove: string[]
  make: number
}

interface PoolWanted {
  size: number
  /** What new tenants get; undefined when the engine does not say: then nothing is out of date. */
  images: WarmTenant['images']
  /** False while nothing new may be begun, e.g. soon after a failure. */
  mayMake: boolean
}

/** At once in the making or being removed: what customers wait for comes first. */
export const maxMoving = 2

/** @param tenants all of the pool, oldest first */
export function planPool(tenants: readonly WarmTenant[], { size, images, mayMake }: PoolWanted): PoolPlan {
  const failed = tenants.filter(({ state }) => state === 'failed')
  const good = tenants.filter(({ state }) => state === 'warm' || state === 'pending')
  const worth = (tenant: WarmTenant) => (tenant.state === 'warm' ? 2 : 0) + (isOutdated(tenant, images) ? 0 : 1)
  const stored = good.toSorted((a, b) => worth(b) - worth(a))
  const surplus = stored.splice(size)
  // What is removed still takes room on the engine.
  const moving = tenants.filter(({ state }) => state === 'pending' || state === 'leaving').length + failed.length
  const outdated =
    stored.length === size && moving === 0 ? stored.filter((tenant) => isOutdated(tenant, images)).slice(0, 1) : []
  return {
    remove: [...failed, ...surplus, ...outdated].map(({ id }) => id),
    make: mayMake ? Math.max(0, Math.min(size - stored.length, maxMoving - moving)) : 0,
  }
}

function isOutdated(tenant: WarmTenant, images: WarmTenant['images']): boolean {
  if (tenant.images === undefined || images === undefined) return false
  return tenant.images.postgres !== images.postgres || tenant.images.runtime !== images.runtime
}
