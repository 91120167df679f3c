// Converts rates between values and the columns of plans and tenants.
import type { RateLimit } from '@tenantry/contract'
import type { HeldRate, OwnRate } from './rate-limits.ts'

interface RateColumns {
  ratePerSecond: number | null
  rateBurst: number | null
}

interface TenantRateColumns extends RateColumns {
  rateUnlimited: boolean
}

/** Returns a rate from its columns; null where it is unlimited. A check constraint requires both columns or neither. */
export function toRate({ ratePerSecond, rateBurst }: RateColumns): RateLimit | null {
  return ratePerSecond === null || rateBurst === null ? null : { per_second: ratePerSecond, burst: rateBurst }
}

/** Returns the rate that applies to a tenant: its own, or else its plan's. */
export function toHeldRate(tenant: TenantRateColumns & { plan: RateColumns }): HeldRate {
  const own = toRate(tenant)
  if (own !== null || tenant.rateUnlimited) return { limit: own, source: 'tenant' }
  return { limit: toRate(tenant.plan), source: 'plan' }
}

/** Returns a tenant's own rate as columns of its row. With null the plan's rate applies. */
export function fromOwnRate(own: OwnRate | null): TenantRateColumns {
  if (own === null || own === 'unlimited') return { ratePerSecond: null, rateBurst: null, rateUnlimited: own !== null }
  return { ratePerSecond: own.per_second, rateBurst: own.burst, rateUnlimited: false }
}
