// The control plane as a process: reads its environment, builds, listens, stops. Nothing else touches `process`.
import { lookup } from 'node:dns/promises'
import { writeFile } from 'node:fs/promises'
import pino from 'pino'
import { buildApp } from './app.ts'
import { keepBackups } from './backups/backup-keeper.ts'
import { createBackupRecords } from './backups/backup-record.ts'
import { checkDirectory, createDirectoryTarget } from './backups/directory-target.ts'
import { createUnknownBackups } from './backups/unknown-backups.ts'
import { closeMonths } from './billing/close-months.ts'
import { loadPdfFonts, type PdfFonts } from './billing/pdf-text.ts'
import { readConfig } from './config.ts'
import { systemClock } from './clock.ts'
import { createContainerEngine } from './engines/container-engine.ts'
import { dockerHost } from './engines/docker/docker-host.ts'
import { createDriftReader } from './health/read-drift.ts'
import { createHealthReader } from './health/read-health.ts'
import { HomeDatabases } from './homes/home-databases.ts'
import { loadHomeMigrations, migrationsFingerprint } from './homes/home-migrations.ts'
import { watchHomes } from './housekeeping/home-watch.ts'
import { checkDatabaseGrants } from './housekeeping/database-grants.ts'
import { watchDisks } from './housekeeping/disk-watch.ts'
import { pauseIdleTenants } from './housekeeping/idle-pause.ts'
import { freeNotificationQueues } from './housekeeping/notification-queue.ts'
import { keepRollouts } from './housekeeping/rollout-keeper.ts'
import { watchStorage } from './housekeeping/storage-watch.ts'
import { keepWarmPools } from './housekeeping/warm-pool.ts'
import { tlsAsk } from './http/routes/tls-ask.ts'
import { internalRoutes } from './http-internal/internal-routes.ts'
import { leaseRoutes } from './http-internal/lease-routes.ts'
import { WatchHub } from './http-internal/watch-hub.ts'
import { newPlatformKey } from './keys/key-text.ts'
import { createSeal } from './keys/seal.ts'
import { createMetrics } from './metrics.ts'
import { dispatchWebhooks } from './operator-events/dispatcher.ts'
import { createSend } from './operator-events/send-message.ts'
import { createTargetCheck } from './operator-events/webhook-target.ts'
import { createAuditLog } from './persistence/audit-log-prisma.ts'
import { createBackupLedger } from './persistence/backup-ledger-prisma.ts'
import { createBackupStore } from './persistence/backup-store-prisma.ts'
import { checkBilling, openBilling } from './persistence/billing-prisma.ts'
import { ChangeFeed } from './persistence/change-feed.ts'
import { openDatabase } from './persistence/database.ts'
import { createDiskWatchStore } from './persistence/disk-watch-store-prisma.ts'
import { createHomeReadingStore } from './persistence/home-readings-prisma.ts'
import { createHousekeepingStore } from './persistence/housekeeping-store-prisma.ts'
import { createHostNames } from './persistence/host-names-prisma.ts'
import { nameInstallation } from './persistence/installation.ts'
import { lead } from './persistence/leader.ts'
import { migrate, readMigrations } from './persistence/migrations.ts'
import { createPlanStore, recordRateLimits, recordRegions, refuseUnknownRegions } from './persistence/plan-store-prisma.ts'
import { createPlatformKeyStore } from './persistence/platform-key-store-prisma.ts'
import { createPublishedSource } from './persistence/published-prisma.ts'
import { createReconcileStore } from './persistence/reconcile-store-prisma.ts'
import { createQuotaWatchStore } from './persistence/quota-watch-prisma.ts'
import { createRequestLeases } from './persistence/request-leases-prisma.ts'
import { createRolloutLedger } from './persistence/rollout-ledger-prisma.ts'
import { createRolloutStore } from './persistence/rollout-store-prisma.ts'
import { createTenantStore } from './persistence/tenant-store-prisma.ts'
import { createUsageBooks } from './persistence/usage-books-prisma.ts'
import { createLedgerClosing } from './persistence/usage-closing-prisma.ts'
import { createUsageLedger } from './persistence/usage-ledger-prisma.ts'
import { createUsageSources } from './persistence/usage-sources-prisma.ts'
import { createWebhookOutbox } from './persistence/webhook-outbox-prisma.ts'
import { createWebhookStore } from './persistence/webhook-store-prisma.ts'
import { control } from './reconcile/controller.ts'
import { parseFailpoints } from './reconcile/failpoints.ts'
import { createRegion, type Region } from './reconcile/region.ts'
import { createRegionConditions } from './reconcile/region-conditions.ts'
import { createRegionProbe } from './reconcile/region-probe.ts'
import type { RegionConfig } from './regions/region-config.ts'
import { createHomeReader, readHomes } from './usage/home-reader.ts'
import { closeLedger } from './usage/close-ledger.ts'
import { measuredLeases } from './quotas/measured-leases.ts'
import { createStoredReader } from './quotas/plan-fit.ts'
import { watchQuotas } from './quotas/quota-watch.ts'
import { createUsageReader } from './usage/read-usage.ts'
import { checkOrExit, readOrExit, stopOnSignals, watchPingSeconds } from '@tenantry/contract'

const config = readOrExit(() => readConfig(process.env))
const log = pino({ level: config.logLevel, base: null })
const now = () => new Date()
const problem = (error: Error) => log.warn({ err: error }, error.message)

const kill = () => process.kill(process.pid, 'SIGKILL')
const failpoint = readOrExit(() => parseFailpoints(config.failpoints, kill, (name) => log.trace({ failpoint: name }, 'failpoint passed')))
const applied = await migrate(config.controlDatabaseUrl, await readMigrations())
if (applied.length > 0) log.info({ migrations: applied }, 'migrations applied')

const seal = createSeal(config.masterKey)
const database = openDatabase(config.controlDatabaseUrl)
await checkOrExit(() => refuseUnknownRegions(database, config.regions))
await recordRegions(database, config.regions)
await recordRateLimits(database, config.rateLimits)
const keys = createPlatformKeyStore({ database, seal, now })
await makeFirstKey()

const migrations = await loadHomeMigrations(config.homeMigrations)
const installation = await checkOrExit(() => nameInstallation(database, config.installation))
const homes = new Map(config.regions.map((region) => [region.id, new HomeDatabases(region.postgres_url, migrations)]))
const regions = new Map(config.regions.map((region) => [region.id, openRegion(region)]))
const probe = createRegionProbe(config.internalToken, fetch)
const changes = new ChangeFeed({ url: config.controlDatabaseUrl, database, onProblem: problem })
const hub = new WatchHub(createPublishedSource(database, seal, config.regions, config.maxUploadBytes, now), problem)
const ledger = createUsageLedger(database, now)
const plans = createPlanStore(database)
const { billing, invoices, adjustments, ledger: invoiceLedger, history, usage: closedUsage } = openBilling(database, config.billing, seal, now)
await checkOrExit(checkPrices)
let pdfFonts: Promise<PdfFonts> | undefined
const conditions = createRegionConditions(systemClock)
const metrics = createMetrics(conditions, now)
const tenants = createTenantStore({ database, seal, now })
const reconcileStore = createReconcileStore(database, seal, now)
const sight = { regions, store: reconcileStore, clock: systemClock }

const webhookTargets = { reachable: config.webhooksMayReach, resolve: lookUpAll }
const housekeepingStore = createHousekeepingStore(database, seal, now)
const keeping = { regions, probe, clock: systemClock, log }
const homeReading = { ...keeping, store: createHomeReadingStore(database), ledger, measure: metrics.metering.homes }
const backups = await checkOrExit(openBackups)
const housekeeping = [
  ...(backups === undefined
    ? []
    : [keepBackups({ ...keeping, target: backups.target, records: backups.records, ledger: createBackupLedger(database, seal, now), tenant: (id) => reconcileStore.snapshot(id), readHome: createHomeReader(homeReading).readNow, migrations, measure: metrics.backups, found: metrics.foundBackups })]),
  keepWarmPools({ ...keeping, store: housekeepingStore, measure: metrics.warmPool }),
  pauseIdleTenants({ ...keeping, store: housekeepingStore }),
  watchStorage({ ...keeping, store: housekeepingStore, measure: metrics.storage }),
  watchHomes({ ...keeping, store: reconcileStore }),
  checkDatabaseGrants({ servers: homes, clock: systemClock, log }),
  freeNotificationQueues({ servers: homes, clock: systemClock, log }),
  watchDisks({ ...keeping, store: createDiskWatchStore(database, now) }),
  dispatchWebhooks({ ...keeping, outbox: createWebhookOutbox(database, seal, now), send: createSend({ ...webhookTargets, timeoutMilliseconds: 15_000 }), random: Math.random, measure: metrics.metering.webhooks }),
  readHomes(homeReading),
  closeLedger({ closing: createLedgerClosing(database, now), clock: systemClock, measure: metrics.metering.ledger, log }),
  watchQuotas({ ...keeping, store: createQuotaWatchStore(database, now) }),
  keepRollouts({ ...keeping, ledger: createRolloutLedger(database, now) }),
  ...(config.billing === undefined ? [] : [closeMonths({ billing, config: config.billing, ledger: invoiceLedger, usage: closedUsage, history, clock: systemClock, measure: metrics.metering.invoices, log })]),
]

const app = await buildApp({
  regions: config.regions,
  tenants,
  plans,
  keys,
  audit: createAuditLog(database),
  rollouts: createRolloutStore({ database, seal, now }),
  backups: { store: createBackupStore({ database, seal, now }), kept: backups },
  usageSources: createUsageSources({ database, seal, now }),
  usage: createUsageReader({ ...sight, books: createUsageBooks(database), tenants, plans, history, probe }),
  stored: createStoredReader({ ...sight, probe }),
  webhooks: createWebhookStore({ database, seal, now }),
  forbiddenAddress: createTargetCheck(webhookTargets),
  billing,
  invoices,
  adjustments,
  history,
  pdfFonts: () => (pdfFonts ??= loadPdfFonts()),
  health: createHealthReader({ ...sight, probe }),
  drift: createDriftReader(sight),
  regionCondition: (region) => conditions.of(region),
  engineOf: (region) => regions.get(region)?.engine,
  changes,
  ping: () => database.$queryRaw`select 1`.then(() => true, () => false),
  now,
  clock: systemClock,
  deleteGraceSeconds: config.deleteGraceSeconds,
  internalToken: config.internalToken,
  logger: log,
  internal: async (instance) => {
    await instance.register(internalRoutes({ hub, ledger, tenants, now }))
    await instance.register(leaseRoutes(measuredLeases(createRequestLeases(database, now), metrics.metering.leases)))
    await instance.register(tlsAsk({ regions: config.regions, hosts: createHostNames(database) }))
  },
  metrics,
})

const stopping = new AbortController()
changes.subscribe(hub.onChange)
const pings = setInterval(() => hub.ping(), watchPingSeconds * 1000)
const loops = Promise.all([
  changes.run(stopping.signal),
  lead(
    { url: config.controlDatabaseUrl, onProblem: problem },
    (leadership) => {
      log.info({ epoch: String(leadership.epoch) }, 'leading')
      return control(
        {
          store: reconcileStore, regions, homeVersion: migrationsFingerprint(migrations), conditions, probe, changes, failpoint,
          clock: systemClock, random: Math.random, log, measure: metrics.controller, orphanGraceSeconds: config.orphanGraceSeconds, housekeeping,
        },
        leadership,
      )
    },
    stopping.signal,
  ),
])
await app.listen({ host: config.host, port: config.port })
log.info({ host: config.host, port: config.port }, 'the control plane listens')

function openRegion(region: RegionConfig): Region {
  const { docker } = region
  const engine =
    docker === undefined
      ? undefined
      : createContainerEngine({ name: 'docker', installation, host: dockerHost({ host: docker.host, ...(docker.tls_directory === undefined ? {} : { tlsDirectory: docker.tls_directory }) }), sleep: (milliseconds, signal) => systemClock.sleep(milliseconds, signal) })
  const shared = homes.get(region.id)
  if (shared === undefined) throw new Error(`the region ${region.id} has no shared databases`)
  return createRegion({ config: region, engine, homes: shared, migrations, internalToken: config.internalToken, clock: systemClock })
}

async function lookUpAll(hostname: string): Promise<string[]> {
  return (await lookup(hostname, { all: true })).map(({ address }) => address)
}

async function checkPrices(): Promise<void> {
  if (config.billing !== undefined) await checkBilling({ ledger: invoiceLedger }, config.billing, (await plans.list()).map(({ id }) => id))
}

async function openBackups() {
  if (config.backups === undefined) return undefined
  await checkDirectory(config.backups)
  const target = createDirectoryTarget(config.backups, installation)
  const records = createBackupRecords({ seal, installation })
  return { target, records, unknown: createUnknownBackups(target, records) }
}

/** Kept in a file, because it is shown nowhere else; written before it is valid, so that no crash loses it. */
async function makeFirstKey(): Promise<void> {
  if (config.platformKeyFile === undefined) return
  if ((await keys.list()).some((key) => key.scope === 'admin' && key.revokedAt === undefined && key.expiresAt === undefined)) return
  const text = newPlatformKey()
  await writeFile(config.platformKeyFile, `${text}\n`, { mode: 0o600 })
  if (await keys.createFirst(text)) log.info({ file: config.platformKeyFile }, 'the first platform key was made')
}

async function stop(): Promise<void> {
  log.info('stopping')
  stopping.abort()
  clearInterval(pings)
  await app.close()
  await loops
  await Promise.all([...homes.values()].map((shared) => shared.close()))
  await database.$disconnect()
}

stopOnSignals(stop, (error) => log.error({ err: error }, 'the stop failed'))
