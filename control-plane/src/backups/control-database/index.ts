// The exports of `control-database/` that the index of backups passes on.
export { dumpKeys } from './dump-folder.ts'
export { findDump } from './find-dump.ts'
export type { DumpJobDeps } from './jobs-dumps.ts'
export { restoreDump, restoredFrom } from './restore-dump.ts'
