// Metrics of the control plane, in Prometheus' text format.
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { ArchiveJobDeps, BackupJobDeps, DumpJobDeps, ProofJobDeps } from './backups/index.ts'
import type { StorageWatchDeps } from './disk/index.ts'
import type { WarmPoolDeps } from './warm-pool/index.ts'
import { createMeteringMetrics, type MeteringMeasures } from './metering-metrics.ts'
import type { RebalanceJobDeps } from './rebalance/index.ts'
import type { ControllerMeasures, RegionConditions } from './reconcile/index.ts'
import type { SessionMeasures } from './sessions/index.ts'

export interface Metrics {
  contentType: string
  text(): Promise<string>
  controller: ControllerMeasures
  warmPool: WarmPoolDeps['measure']
  sharedDatabase: RebalanceJobDeps['measure']
  storage: StorageWatchDeps['measure']
  backups: BackupJobDeps['measure']
  archives: ArchiveJobDeps['measure']
  foundBackups: BackupJobDeps['found']
  backupTargets: BackupJobDeps['available']
  backupAges: ProofJobDeps['measure']
  controlDatabaseDump: DumpJobDeps['measure']
  sessions: SessionMeasures
  metering: MeteringMeasures
}

/** The kinds of jobs on backups. */
const jobKinds: Record<Parameters<BackupJobDeps['measure']>[0], true> = { backup: true, restore: true, verify: true }

/** Creates the metrics. @param regions conditions, read whenever the metrics are read */
export function createMetrics(regions: Pick<RegionConditions, 'all'>, now: () => Date): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const runs = new Counter({
    name: 'tenantry_reconciliations_total',
    help: 'Reconciliations of tenants, by outcome',
    labelNames: ['outcome'],
    registers: [registry],
  })
  const seconds = new Histogram({
    name: 'tenantry_reconciliation_seconds',
    help: 'Time of a reconciliation',
    buckets: [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30],
    registers: [registry],
  })
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name, help, labelNames, registers: [registry] })
  const counter = (name: string, help: string, labelNames: string[]) =>
    new Counter({ name, help, labelNames, registers: [registry] })
  const depth = gauge('tenantry_queue_depth', 'Tenants that wait for a reconciliation or are being reconciled')
  const delayed = gauge('tenantry_queue_delayed', 'Tenants whose reconciliation is delayed')
  const oldest = gauge('tenantry_queue_oldest_seconds', 'Age of the oldest entry of the queue')
  const sweepSeconds = gauge('tenantry_sweep_seconds', 'Duration of the last sweep of a whole region', ['region'])
  const regionReady = gauge(
    'tenantry_region_ready',
    'Whether the region, apart from its tenants, was healthy at its last observation',
    ['region'],
  )
  const orphans = gauge('tenantry_orphans', 'Stacks on the engine without a tenant, in their grace period', ['region'])
  const orphansRemoved = counter('tenantry_orphans_removed_total', 'Stacks without a tenant that were removed', [
    'region',
  ])
  const corrections = counter('tenantry_region_corrections_total', "Sweeps that had to repair the region's own stack", [
    'region',
  ])
  const warmStacks = gauge(
    'tenantry_warm_stacks',
    'Homes and stacks that were created in advance, by region, isolation and state',
    ['region', 'isolation', 'state'],
  )
  const databaseLabels = ['region', 'database']
  const databaseHomes = gauge('tenantry_shared_database_homes', 'Homes in a shared database', databaseLabels)
  const databaseBytes = gauge('tenantry_shared_database_bytes', 'The size of a shared database', databaseLabels)
  const databaseUse = gauge(
    'tenantry_shared_database_limit_ratio',
    'The used part of the limit of a shared database, of homes or bytes, whichever is greater',
    databaseLabels,
  )
  const storePhantoms = gauge(
    'tenantry_storage_phantoms',
    'Requested objects whose file was missing, since the starts of the runtimes',
    ['region'],
  )
  const storeOrphans = gauge('tenantry_storage_orphans', 'Files without an object after the last sweeps', ['region'])
  const storeBacklog = gauge('tenantry_storage_backlog', 'Released files that could not be removed', ['region'])
  const backupJobs = counter(
    'tenantry_backup_jobs_total',
    'Backups, restores and verifications that ended, by outcome',
    ['kind', 'outcome'],
  )
  // An increase is visible only of a series that exists before it.
  for (const kind of Object.keys(jobKinds))
    for (const outcome of ['succeeded', 'failed']) backupJobs.inc({ kind, outcome }, 0)
  const unknownBackups = gauge(
    'tenantry_backups_unknown',
    'Backups in quarantine, which the control database does not know',
  )
  const missingBackups = gauge('tenantry_backups_missing', 'Complete backups whose files are in no backup target')
  const uncopiedBackups = gauge(
    'tenantry_backups_uncopied',
    'Complete backups that an available target does not have yet',
  )
  const targetAvailable = gauge('tenantry_backup_target_available', 'Whether the backup target could be listed last', [
    'target',
  ])
  const dumpTime = gauge(
    'tenantry_control_database_dump_timestamp_seconds',
    'The Unix time of the newest dump of the control database in the backup target; 0 without one',
    ['target'],
  )
  const archiveLag = gauge(
    'tenantry_archive_lag_seconds',
    'The greatest time that the archive of a running tenant lacks; 0 without archives',
  )
  const archivesFailed = gauge(
    'tenantry_archives_failed',
    'Running tenants whose archive has failed, or that cannot be recovered to a point in time yet',
  )
  const backupAge = gauge(
    'tenantry_backup_oldest_seconds',
    'The greatest age of the newest complete backup, or of the last proof, of any tenant with a schedule',
    ['kind'],
  )
  const backupsLacking = gauge(
    'tenantry_backup_tenants_without',
    'Tenants with a schedule that have no complete, or no proven backup',
    ['kind'],
  )
  const backupSeconds = new Histogram({
    name: 'tenantry_backup_job_seconds',
    help: 'Time of a backup, restore or verification',
    labelNames: ['kind'],
    buckets: [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000],
    registers: [registry],
  })
  const sessionsEnded = counter(
    'tenantry_sql_sessions_ended_total',
    "Tenants' SQL sessions over a limit whose statement was cancelled, or that were terminated",
    ['region', 'reason', 'action'],
  )
  const loginsClosed = gauge('tenantry_sql_logins_closed', "Tenants' SQL logins that are closed", ['region'])
  const metering = createMeteringMetrics(registry, now)
  let readQueue = () => ({ depth: 0, delayed: 0, oldestSeconds: 0 })
  return {
    contentType: registry.contentType,
    text() {
      const queue = readQueue()
      depth.set(queue.depth)
      delayed.set(queue.delayed)
      oldest.set(queue.oldestSeconds)
      regionReady.reset()
      for (const [region, { status }] of regions.all()) regionReady.set({ region }, status === 'True' ? 1 : 0)
      metering.age()
      return registry.metrics()
    },
    metering: metering.measures,
    sessions: {
      ended: (region, reason, action, count) => sessionsEnded.inc({ region, reason, action }, count),
      closed: (region, logins) => loginsClosed.set({ region }, logins),
    },
    controller: {
      reconciled(outcome, durationSeconds) {
        runs.inc({ outcome })
        seconds.observe(durationSeconds)
      },
      swept(region, sweep) {
        sweepSeconds.set({ region }, sweep.seconds)
        orphans.set({ region }, sweep.orphans)
        orphansRemoved.inc({ region }, sweep.removed)
        if (sweep.corrected) corrections.inc({ region })
      },
      queue(read) {
        readQueue = read
      },
    },
    backups(kind, outcome, durationSeconds) {
      backupJobs.inc({ kind, outcome })
      backupSeconds.observe({ kind }, durationSeconds)
    },
    controlDatabaseDump(target, newest) {
      dumpTime.set({ target }, newest.getTime() / 1000)
    },
    archives({ lagSeconds, failed }) {
      archiveLag.set(lagSeconds)
      archivesFailed.set(failed)
    },
    foundBackups({ unknown, missing, uncopied }) {
      unknownBackups.set(unknown)
      missingBackups.set(missing)
      uncopiedBackups.set(uncopied)
    },
    backupTargets: (target, isAvailable) => targetAvailable.set({ target }, isAvailable ? 1 : 0),
    backupAges(ages) {
      for (const kind of ['complete', 'proven'] as const) {
        backupAge.set({ kind }, ages[kind].seconds)
        backupsLacking.set({ kind }, ages[kind].missing)
      }
    },
    storage(region, { phantoms, orphans, backlog }) {
      storePhantoms.set({ region }, phantoms)
      storeOrphans.set({ region }, orphans)
      storeBacklog.set({ region }, backlog)
    },
    sharedDatabase(region, { name: database, homes, maxHomes, bytes, maxBytes }) {
      const labels = { region, database }
      databaseHomes.set(labels, homes)
      if (bytes !== undefined) databaseBytes.set(labels, bytes)
      const used = maxBytes === undefined || bytes === undefined ? 0 : bytes / maxBytes
      databaseUse.set(labels, Math.max(homes / maxHomes, used))
    },
    warmPool(region, isolation, counts) {
      for (const [state, count] of Object.entries(counts)) warmStacks.set({ region, isolation, state }, count)
    },
  }
}
