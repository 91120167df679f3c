// The exports of `backups/` that other modules may import.
export { type BackupJobDeps, runBackups } from './jobs.ts'
export { createBackupRecords } from './backup-record.ts'
export { checkDirectory, createDirectoryTarget } from './directory-target.ts'
export type { BackupRoutesDeps } from './routes-deps.ts'
export { addBackupRoutes } from './routes.ts'
export { createBackupLedger } from './store-ledger.ts'
export { createBackupStore } from './store.ts'
export { createUnknownBackups } from './unknown-backups.ts'
