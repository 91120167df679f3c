// The exports of `pause/` that other modules may import.
export { pauseIdleTenants } from './jobs.ts'
export { createPauseStore } from './store.ts'
