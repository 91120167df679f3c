// What others may import of `audit/`.
export { addAuditRoutes, type AuditRoutesDeps } from './routes.ts'
export { createAuditLog } from './store.ts'
