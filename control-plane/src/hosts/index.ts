// The exports of `hosts/` that other modules may import.
export { measureHosts } from './jobs.ts'
export { addHostRoutes, type HostRoutesDeps } from './routes.ts'
export { createHostStore, type HostStore } from './store.ts'
