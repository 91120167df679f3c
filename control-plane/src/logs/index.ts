// What others may import of `logs/`.
export { addTenantLogs, type LogRoutesDeps } from './routes.ts'
