// What others may import of `pause/`.
export { pauseIdleTenants } from './jobs.ts'
export { createPauseStore } from './store.ts'
