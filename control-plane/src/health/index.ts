// The exports of `health/` that other modules may import.
export { watchHomes } from './jobs.ts'
export { createHealthReader } from './read-health.ts'
export { addHealthRoutes, type HealthRoutesDeps } from './routes.ts'
export { storedNow, type StoredNowDeps } from './stored-now.ts'
export { createStoredReader } from './stored-reader.ts'
export { type StatusDeps, statusSourceOf, type TenantStatusSource } from './tenant-status-source.ts'
