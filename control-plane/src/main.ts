// The control plane as a process: reads its environment, builds, listens, stops. Nothing else touches `process`.
import { lookup } from 'node:dns/promises'
import { writeFile } from 'node:fs/promises'
import pino from 'pino'
import { buildApp } from './app.ts'
import { keepBackups, createBackupRecords, checkDirectory, createDirectoryTarget, createUnknownBackups, createBackupLedger, createBackupStore } from './backups/index.ts'
import { closeMonths, loadPdfFonts, type PdfFonts, checkBilling, openBilling } from './billing/index.ts'
import { readConfig } from './config.ts'
import { systemClock } from './platform/clock.ts'
import { createContainerEngine } from './engines/index.ts'
import { dockerHost } from './engines/docker/index.ts'
import { createDriftReader } from './drift/index.ts'
import { createHealthReader, watchHomes, createStoredReader } from './health/index.ts'
import { HomeDatabases, loadHomeMigrations, migrationsFingerprint } from './homes/index.ts'
import { checkDatabaseGrants } from './platform/database-grants.ts'
import { watchDisks, watchStorage, createDiskWatchStore } from './disk/index.ts'
import { pauseIdleTenants, createPauseStore } from './pause/index.ts'
import { freeNotificationQueues } from './platform/notification-queue.ts'
import { keepRollouts, createRolloutLedger, createRolloutStore } from './rollouts/index.ts'
import { keepWarmPools, createWarmPoolStore } from './warm-pool/index.ts'
import { tlsAsk, internalRoutes, WatchHub, createHostNames, createPublishedSource } from './watch/index.ts'
import { leaseRoutes, createQuotaWatchStore, createRequestLeases, measuredLeases, watchQuotas } from './quotas/index.ts'
import { newPlatformKey, createPlatformKeyStore } from './keys/index.ts'
import { createSeal } from './platform/seal.ts'
import { createMetrics } from './metrics.ts'
import { dispatchWebhooks, createSend, createTargetCheck, createWebhookOutbox, createWebhookStore } from './webhooks/index.ts'
import { createAuditLog } from './audit/index.ts'
import { ChangeFeed } from './platform/change-feed.ts'
import { openDatabase } from './platform/database.ts'
import { createHomeReadingStore, createUsageBooks, createLedgerClosing, createUsageLedger, createUsageSources, createHomeReader, readHomes, closeLedger, createUsageReader } from './usage/index.ts'
import { createRunningTenants, createTenantStore } from './tenants/index.ts'
import { createKeptAnswers } from './platform/kept-answers.ts'
import { nameInstallation } from './platform/installation.ts'
import { lead } from './platform/leader.ts'
import { migrate, readMigrations } from './platform/migrations.ts'
import { createPlanStore, recordRateLimits, recordRegions, refuseUnknownRegions } from './plans/index.ts'
import { createReconcileStore, control, parseFailpoints, createRegion, type Region, createRegionConditions, createRegionProbe } from './reconcile/index.ts'
import type { RegionConfig } from './regions/index.ts'
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
