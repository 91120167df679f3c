// The exports of `quotas/` that other modules may import.
export { type LeaseMeasure, measuredLeases } from './measured-leases.ts'
export { defaultHomeLimits, type HomeLimits, readHomeLimits, toRuntimeLimits } from './home-limits.ts'
export { watchQuotas } from './jobs.ts'
export {
  defaultRateLimits,
  maxRate,
  type HeldRate,
  type OwnRate,
  type RateLimits,
  readRateLimits,
} from './rate-limits.ts'
export { fromOwnRate, toHeldRate, toRate } from './store-rate-rows.ts'
export { leaseRoutes } from './routes-internal.ts'
export { freeSlots } from './store-connection-slots.ts'
export { createRequestLeases } from './store-request-leases.ts'
export { createQuotaWatchStore } from './store-watch.ts'
