// What others may import of `rollouts/`.
export { keepRollouts } from './jobs.ts'
export { addRolloutRoutes, type RolloutRoutesDeps } from './routes.ts'
export { createRolloutLedger } from './store-ledger.ts'
export { createRolloutStore } from './store.ts'
