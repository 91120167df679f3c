// The exports of `disk/` that other modules may import.
export { watchDisks } from './jobs.ts'
export { type StorageWatchDeps, watchStorage } from './jobs-storage.ts'
export { createDiskWatchStore } from './store.ts'
