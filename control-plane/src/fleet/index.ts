// The exports of `fleet/` that other modules may import.
export { addChangesRoute, type ChangesRoutesDeps } from './routes-changes.ts'
export { addFleetRoutes, type FleetRoutesDeps } from './routes.ts'
export { createFleetStore, type FleetStore } from './store.ts'
