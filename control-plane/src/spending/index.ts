// The exports of `spending/` that other modules may import.
export { watchSpending, type SpendingDeps } from './jobs.ts'
export { addSpendingRoutes, type SpendingRoutesDeps } from './routes.ts'
export { createSpendingStore, type SpendingStore } from './store.ts'
