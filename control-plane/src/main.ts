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
import { systemClock } from './platform/clock.ts'
import { createContainerEngine } from './engines/container-engine.ts'
import { dockerHost } from './engines/docker/docker-host.ts'
import { createDriftReader } from './drift/read-drift.ts'
import { createHealthReader } from './health/read-health.ts'
import { HomeDatabases } from './homes/home-databases.ts'
import { loadHomeMigrations, migrationsFingerprint } from './homes/home-migrations.ts'
import { watchHomes } from './health/home-watch.ts'
import { checkDatabaseGrants } from './platform/database-grants.ts'
import { watchDisks } from './disk/jobs.ts'
import { pauseIdleTenants } from './pause/jobs.ts'
import { freeNotificationQueues } from './platform/notification-queue.ts'
import { keepRollouts } from './rollouts/jobs.ts'
import { watchStorage } from './disk/storage-watch.ts'
import { keepWarmPools } from './warm-pool/jobs.ts'
import { tlsAsk } from './watch/routes-tls-ask.ts'
import { internalRoutes } from './watch/routes.ts'
import { leaseRoutes } from './quotas/routes-internal.ts'
import { WatchHub } from './watch/watch-hub.ts'
import { newPlatformKey } from './keys/key-text.ts'
import { createSeal } from './platform/seal.ts'
import { createMetrics } from './metrics.ts'
import { dispatchWebhooks } from './webhooks/jobs.ts'
import { createSend } from './webhooks/send-message.ts'
import { createTargetCheck } from './webhooks/webhook-target.ts'
import { createAuditLog } from './audit/store.ts'
import { createBackupLedger } from './backups/store-ledger.ts'
import { createBackupStore } from './backups/store.ts'
import { checkBilling, openBilling } from './billing/billing-stores.ts'
import { ChangeFeed } from './platform/change-feed.ts'
import { openDatabase } from './platform/database.ts'
import { createDiskWatchStore } from './disk/store.ts'
import { createHomeReadingStore } from './usage/store-home-readings.ts'
import { createPauseStore } from './pause/store.ts'
import { createRunningTenants } from './tenants/store-running.ts'
import { createWarmPoolStore } from './warm-pool/store.ts'
import { createHostNames } from './watch/store-host-names.ts'
import { createKeptAnswers } from './platform/kept-answers.ts'
import { nameInstallation } from './platform/installation.ts'
import { lead } from './platform/leader.ts'
import { migrate, readMigrations } from './platform/migrations.ts'
import { createPlanStore, recordRateLimits, recordRegions, refuseUnknownRegions } from './plans/store.ts'
import { createPlatformKeyStore } from './keys/store.ts'
import { createPublishedSource } from './watch/store.ts'
import { createReconcileStore } from './reconcile/store.ts'
import { createQuotaWatchStore } from './quotas/store-watch.ts'
import { createRequestLeases } from './quotas/store-request-leases.ts'
import { createRolloutLedger } from './rollouts/store-ledger.ts'
import { createRolloutStore } from './rollouts/store.ts'
import { createTenantStore } from './tenants/store.ts'
import { createUsageBooks } from './usage/store-books.ts'
import { createLedgerClosing } from './usage/store-closing.ts'
import { createUsageLedger } from './usage/store-ledger.ts'
import { createUsageSources } from './usage/store-sources.ts'
import { createWebhookOutbox } from './webhooks/store-outbox.ts'
import { createWebhookStore } from './webhooks/store.ts'
import { control } from './reconcile/controller.ts'
import { parseFailpoints } from './reconcile/failpoints.ts'
import { createRegion, type Region } from './reconcile/region.ts'
import { createRegionConditions } from './reconcile/region-conditions.ts'
import { createRegionProbe } from './reconcile/region-probe.ts'
import type { RegionConfig } from './regions/region-config.ts'
import { createHomeReader, readHomes } from './usage/home-reader.ts'
import { closeLedger } from './usage/close-ledger.ts'
import { measuredLeases } from './quotas/measured-leases.ts'
import { createStoredReader } from './health/stored-reader.ts'
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
const running = createRunningTenants(database)
const keeping = { regions, probe, clock: systemClock, log }
const homeReading = { ...keeping, store: createHomeReadingStore(database), ledger, measure: metrics.metering.homes }
const backups = await checkOrExit(openBackups)
const housekeeping = [
  ...(backups === undefined
    ? []
    : [keepBackups({ ...keeping, target: backups.target, records: backups.records, ledger: createBackupLedger(database, seal, now), tenant: (id) => reconcileStore.snapshot(id), readHome: createHomeReader(homeReading).readNow, migrations, measure: metrics.backups, found: metrics.foundBackups })]),
  keepWarmPools({ ...keeping, store: createWarmPoolStore(database, seal, now), measure: metrics.warmPool }),
  pauseIdleTenants({ ...keeping, store: { ...running, ...createPauseStore(database, now) } }),
  watchStorage({ ...keeping, store: running, measure: metrics.storage }),
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
  answers: createKeptAnswers({ database, seal, now }),
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
