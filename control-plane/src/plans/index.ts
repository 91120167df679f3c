// The exports of `plans/` that other modules may import.
export type { PlanPeriod } from './plan-period.ts'
export type { Plan } from './plan.ts'
export { addPlanRoutes, type PlanRoutesDeps } from './routes.ts'
export { createPlanHistory, type PlanHistory } from './store-history.ts'
export { createPlanStore, recordRateLimits, recordRegions, rejectUnknownRegions, type PlanStore } from './store.ts'
