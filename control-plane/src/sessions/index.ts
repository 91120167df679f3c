// The exports of `sessions/` that other modules may import.
export { addSessionRoutes, type SessionRoutesDeps } from './routes.ts'
export { openSessions, type SessionMeasures } from './open-sessions.ts'
export { defaultSessionLimits, readSessionLimits, type SessionLimitsConfig } from './session-limits.ts'
