// The exports of `logs/` that other modules may import.
export { addTenantLogs, type LogRoutesDeps } from './routes.ts'
