// The public interface of `rebalance/`.
export { rebalanceJobs, type RebalanceJobDeps } from './jobs.ts'
export { addRebalanceRoutes, type RebalanceRoutesDeps } from './routes.ts'
export { createRebalanceStore } from './store.ts'
