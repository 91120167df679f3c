// The public interface of `moves/`.
export { moveHomes } from './jobs.ts'
export { addMoveRoutes, type MoveRoutesDeps } from './routes.ts'
