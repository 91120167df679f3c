// The public interface of `rebalance/`.
export { rebalanceJobs, type RebalanceJobDeps } from './jobs.ts'
export { openRebalances } from './open-rebalances.ts'
export { addRebalanceRoutes, type RebalanceRoutesDeps } from './routes.ts'
