// The exports of `console-sessions/` that other modules may import.
export { addConsoleSessionRoutes, type ConsoleSessionRoutesDeps } from './routes.ts'
export { createSessionAccess } from './session-access.ts'
export { createConsoleSessionStore, type ConsoleSessionStore } from './store.ts'
