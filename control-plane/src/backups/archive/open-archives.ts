// Opens the archives of an installation: their files, and their stores in the control database.
import type { Clock } from '../../platform/clock.ts'
import type { Database } from '../../platform/database.ts'
import type { Seal } from '../../platform/seal.ts'
import type { TargetCalls } from '../target-calls.ts'
import type { TargetConfig } from '../targets-config.ts'
import { createArchiveFiles, type ArchiveFiles } from './archive-files.ts'
import { createArchiveDirectory } from './archive-target.ts'
import { createArchiveLedger, type ArchiveLedger } from './store-archives.ts'
import { createRecoveryStore, type RecoveryStore } from './store-recovery.ts'

/** The archives of an installation. */
export interface Archives {
  files: ArchiveFiles
  ledger: ArchiveLedger
  recovery: RecoveryStore
}

/** The dependencies of archives: the control database, and the backup targets. */
interface ArchivesOptions {
  database: Database
  seal: Seal
  now: () => Date
  clock: Pick<Clock, 'timeout'>
  configs: readonly TargetConfig[]
  /** The calls that other stores in these targets share. */
  calls: TargetCalls
  installation: string
}

/** Opens the archives, in the order in which the targets are written. There is at least one target. */
export async function openArchives(options: ArchivesOptions): Promise<Archives> {
  const { database, seal, now, clock, configs, calls, installation } = options
  const targets = await Promise.all(configs.map((config) => openTarget(config, installation)))
  return {
    files: createArchiveFiles(targets, clock, calls),
    ledger: createArchiveLedger(database, seal, now),
    recovery: createRecoveryStore({ database, seal, now }),
  }
}

async function openTarget(config: TargetConfig, installation: string) {
  if ('directory' in config) return createArchiveDirectory(config.directory, installation, config.name)
  // The SDK takes long to load, so it is loaded only if it is used.
  const { createArchiveBucket } = await import('./archive-bucket.ts')
  return createArchiveBucket(config.s3, installation, config.name)
}
