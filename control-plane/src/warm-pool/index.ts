// What others may import of `warm-pool/`.
export { keepWarmPools, type WarmPoolDeps } from './jobs.ts'
export { createWarmPoolStore } from './store.ts'
