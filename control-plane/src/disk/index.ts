// What others may import of `disk/`.
export { watchDisks } from './jobs.ts'
export { type StorageWatchDeps, watchStorage } from './jobs-storage.ts'
export { createDiskWatchStore } from './store.ts'
