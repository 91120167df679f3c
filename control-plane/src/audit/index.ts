// The exports of `audit/` that other modules may import.
export { removeOldEntries } from './jobs.ts'
export { addAuditRoutes, type AuditRoutesDeps } from './routes.ts'
export { createOldEntries } from './store-old-entries.ts'
export { createAuditLog } from './store.ts'
