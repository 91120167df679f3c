// Rate limits of tenants at a gateway: the plans' defaults, the operator's settings for plans, and those of single
// tenants. Pure.
import type { RateLimit } from '@tenantry/contract'

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

const entry = /^([A-Za-z][A-Za-z0-9_-]*)=(?:([1-9][0-9]{0,6})\/([1-9][0-9]{0,6})|none)$/

/**
 * Reads the setting `TENANTRY_RATE_LIMITS`.
 * @param text for example `Free=50/200,Pro=none`: requests per second and burst; other plans have their defaults
 * @throws Error that names the part that is wrong
 */
export function readRateLimits(text: string): RateLimits {
  const own = text
    .split(',')
    .filter((part) => part.trim() !== '')
    .map((part): [string, RateLimit | null] => {
      const [whole, plan, perSecond, burst] = entry.exec(part.trim()) ?? []
      if (whole === undefined || plan === undefined) {
        throw new Error(`TENANTRY_RATE_LIMITS: "${part.trim()}" is not PLAN=PER_SECOND/BURST or PLAN=none`)
      }
      if (!(plan in defaultRateLimits))
        throw new Error(
          `TENANTRY_RATE_LIMITS: unknown plan "${plan}". Allowed: ${Object.keys(defaultRateLimits).join(', ')}`,
        )
      return [plan, perSecond === undefined ? null : { per_second: Number(perSecond), burst: Number(burst) }]
    })
  return { ...defaultRateLimits, ...Object.fromEntries(own) }
}
