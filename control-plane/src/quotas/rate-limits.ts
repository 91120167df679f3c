// Rate limits of tenants at a gateway: the plans' defaults, the operator's settings for plans, and those of single
// tenants. Pure.
import type { RateLimit } from '@tenantry/contract'
import { readPlanPairs } from './plan-pairs.ts'

/** The rate of one tenant, which replaces its plan's. */
export type OwnRate = RateLimit | 'unlimited'

/** The rate that applies to a tenant; null is unlimited. */
export interface HeldRate {
  limit: RateLimit | null
  source: 'plan' | 'tenant'
}

/** The maximum of `per_second` and of `burst`: seven digits. */
export const maxRate = 9_999_999

/** Rate limits by plan. Null is unlimited, as is a plan that is not named. */
export type RateLimits = Readonly<Record<string, RateLimit | null>>

/** The rate limits of plans that the operator's setting does not name (specification, section 7). */
export const defaultRateLimits: RateLimits = {
  Free: { per_second: 100, burst: 500 },
  Pro: { per_second: 1_000, burst: 5_000 },
  Enterprise: null,
}

/**
 * Reads the setting `TENANTRY_RATE_LIMITS`.
 * @param text for example `Free=50/200,Pro=none`: requests per second and burst; other plans have their defaults
 * @throws Error that names the part that is wrong
 */
export function readRateLimits(text: string): RateLimits {
  return readPlanPairs(text, {
    name: 'TENANTRY_RATE_LIMITS',
    form: 'PER_SECOND/BURST',
    defaults: defaultRateLimits,
    max: [maxRate, maxRate],
    from: (perSecond, burst) => ({ per_second: perSecond, burst }),
  })
}
