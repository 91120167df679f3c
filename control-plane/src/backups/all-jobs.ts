// The leader's jobs of this folder: backups, archives, proofs, and dumps of the control database.
import type { Clock } from '../platform/clock.ts'
import type { Database } from '../platform/database.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import type { Seal } from '../platform/seal.ts'
import type { PostgresUrl } from '../platform/superuser-url.ts'
import { createHostChoice, type Failpoint, type ReconcileStore, type Region } from '../reconcile/index.ts'
import { runArchiveCopies } from './archive/copy-archives.ts'
import { runArchives, type ArchiveJobDeps } from './archive/jobs-archives.ts'
import type { BackupStorage } from './backup-storage.ts'
import { dumpControlDatabase, type DumpJobDeps } from './control-database/jobs-dumps.ts'
import { proveBackups, type ProofJobDeps } from './jobs-proofs.ts'
import { runBackups, type BackupJobDeps } from './jobs.ts'
import { createBackupLedger } from './store-ledger.ts'
import { createProofLedger } from './store-proofs.ts'

type Found = 'changes' | 'tenant' | 'readHome' | 'runtimeFiles' | 'migrations'

/** The dependencies of the jobs, apart from the storage. */
export interface AllJobsDeps extends Pick<BackupJobDeps, Found> {
  services: Pick<ReconcileStore, 'placements'>
  regions: ReadonlyMap<string, Region>
  failpoint: Failpoint
  config: { controlDatabaseUrl: PostgresUrl; backupBytesPerSecond: number; dumpMinutes: number; proofDays: number }
  database: Database
  seal: Seal
  now: () => Date
  clock: Clock
  random: () => number
  log: Pick<Log, 'info' | 'warn'>
  measures: {
    backups: BackupJobDeps['measure']
    foundBackups: BackupJobDeps['found']
    backupTargets: BackupJobDeps['available']
    archives: ArchiveJobDeps['measure']
    backupAges: ProofJobDeps['measure']
    controlDatabaseDump: DumpJobDeps['measure']
  }
}

/** Creates the jobs, which run while this control plane leads. Without targets, there are none. */
export function backupJobs(
  storage: BackupStorage | undefined,
  { config, database, seal, now, random, measures, services, failpoint, ...deps }: AllJobsDeps,
): ((leadership: Leadership) => Promise<void>)[] {
  if (storage === undefined) return []
  return [
    runBackups({
      ...deps,
      ...storage,
      hosts: createHostChoice({ regions: deps.regions, placements: services.placements, failpoint }),
      bytesPerSecond: config.backupBytesPerSecond,
      ledger: createBackupLedger(database, seal, now),
      measure: measures.backups,
      found: measures.foundBackups,
      available: measures.backupTargets,
    }),
    dumpControlDatabase({
      ...deps,
      ...storage.dumps,
      url: config.controlDatabaseUrl,
      intervalMilliseconds: config.dumpMinutes * 60_000,
      random,
      measure: measures.controlDatabaseDump,
    }),
    runArchives({ ...deps, ...storage.archives, measure: measures.archives }),
    runArchiveCopies({ ...deps, ...storage.archives }),
    proveBackups({
      ...deps,
      ledger: createProofLedger(database, now),
      periodDays: config.proofDays,
      measure: measures.backupAges,
    }),
  ]
}
