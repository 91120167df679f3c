// The exports of `audit/` that other modules may import.
export { addAuditRoutes, type AuditRoutesDeps } from './routes.ts'
export { createAuditLog } from './store.ts'
