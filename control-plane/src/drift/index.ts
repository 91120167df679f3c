// The exports of `drift/` that other modules may import.
export { createDriftReader } from './read-drift.ts'
export { addDriftRoutes, type DriftRoutesDeps } from './routes.ts'
