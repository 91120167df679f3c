// The exports of `warm-pool/` that other modules may import.
export { runWarmPools, type WarmPoolDeps } from './jobs.ts'
export { createWarmPoolStore } from './store.ts'
