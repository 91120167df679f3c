// The exports of `hosts/` that other modules may import.
export { measureHosts } from './jobs.ts'
export { addHostStateRoutes } from './routes-states.ts'
export { addHostRoutes, type HostRoutesDeps } from './routes.ts'
export { createHostStore, type HostStore } from './store.ts'
