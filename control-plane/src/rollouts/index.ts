// The public interface of `rollouts/`.
export { runRollouts } from './jobs.ts'
export { addRolloutRoutes, type RolloutRoutesDeps } from './routes.ts'
export { createRolloutLedger } from './store-ledger.ts'
export { createRolloutStore } from './store.ts'
