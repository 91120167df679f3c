// What others may import of `drift/`.
export { createDriftReader } from './read-drift.ts'
export { addDriftRoutes, type DriftRoutesDeps } from './routes.ts'
