// Rates as the rows of plans and tenants keep them.
import type { RateLimit } from '@tenantry/contract'
import type { HeldRate, OwnRate } from './rate-limits.ts'

interface RateColumns {
  ratePerSecond: number | null
  rateBurst: number | null
}

interface TenantRateColumns extends RateColumns {
  rateUnlimited: boolean
}

/** A rate of its columns, null where it is unlimited. A check constraint lets either both be null or none. */
export function toRate({ ratePerSecond, rateBurst }: RateColumns): RateLimit | null {
  return ratePerSecond === null || rateBurst === null ? null : { per_second: ratePerSecond, burst: rateBurst }
}

/** The rate that holds for a tenant: its own, or else that of its plan. */
export function toHeldRate(tenant: TenantRateColumns & { plan: RateColumns }): HeldRate {
  const own = toRate(tenant)
  if (own !== null || tenant.rateUnlimited) return { limit: own, source: 'tenant' }
  return { limit: toRate(tenant.plan), source: 'plan' }
}

/** A tenant's own rate as the columns of its row; null: the plan's holds. */
export function fromOwnRate(own: OwnRate | null): TenantRateColumns {
  if (own === null || own === 'unlimited') return { ratePerSecond: null, rateBurst: null, rateUnlimited: own !== null }
  return { ratePerSecond: own.per_second, rateBurst: own.burst, rateUnlimited: false }
}
