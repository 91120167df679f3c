// The exports of `plans/` that other modules may import.
export type { PlanHistory, PlanPeriod } from './plan-history.ts'
export type { Plan, PlanStore } from './plan.ts'
export { addPlanRoutes, type PlanRoutesDeps } from './routes.ts'
export { createPlanHistory } from './store-history.ts'
export { createPlanStore, recordRateLimits, recordRegions, rejectUnknownRegions } from './store.ts'
