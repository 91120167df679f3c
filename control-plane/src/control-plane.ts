// The control plane: the only place that puts its parts together. What is outside of it, time and other machines for example, is
// given to it: `main.ts` gives the real things, a test its own.
import { writeFile } from 'node:fs/promises'
import { watchPingSeconds } from '@tenantry/contract'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { buildApp } from './app.ts'
import { createAuditLog } from './audit/index.ts'
import {
  checkDirectory,
  createBackupLedger,
  createBackupRecords,
  createBackupStore,
  createDirectoryTarget,
  createUnknownBackups,
  keepBackups,
} from './backups/index.ts'
import {
  checkBilling,
  closeMonths,
  loadPdfFonts,
  openBilling,
  type BillingParts,
  type PdfFonts,
} from './billing/index.ts'
import type { Config } from './config.ts'
import { createDiskWatchStore, watchDisks, watchStorage } from './disk/index.ts'
import { createDriftReader } from './drift/index.ts'
import { createContainerEngine } from './engines/index.ts'
import { dockerHost } from './engines/docker/index.ts'
import { createHealthReader, createStoredReader, watchHomes } from './health/index.ts'
import { HomeDatabases, loadHomeMigrations, migrationsFingerprint } from './homes/index.ts'
import { createPlatformKeyStore, newPlatformKey, type PlatformKeyStore } from './keys/index.ts'
import { createMetrics } from './metrics.ts'
import { createPauseStore, pauseIdleTenants } from './pause/index.ts'
import { createPlanStore, recordRateLimits, recordRegions, rejectUnknownRegions } from './plans/index.ts'
import { ChangeFeed } from './platform/change-feed.ts'
import type { Clock } from './platform/clock.ts'
import { checkDatabaseGrants } from './platform/database-grants.ts'
import { openDatabase } from './platform/database.ts'
import { nameInstallation } from './platform/installation.ts'
import { createStoredResponses } from './platform/stored-responses.ts'
import { lead, type Leadership } from './platform/leader.ts'
import { migrate, readMigrations } from './platform/migrations.ts'
import { freeNotificationQueues } from './platform/notification-queue.ts'
import { createRecordWrite, type RecordWrite } from './platform/recorded-write.ts'
import { createSeal, type Seal } from './platform/seal.ts'
import { createQuotaWatchStore, createRequestLeases, leaseRoutes, measuredLeases, watchQuotas } from './quotas/index.ts'
import {
  control,
  createReconcileStore,
  createRegion,
  createRegionConditions,
  createRegionProbe,
  type Failpoint,
  type ReconcileStore,
  type Region,
  type RegionOptions,
} from './reconcile/index.ts'
import type { RegionConfig } from './regions/index.ts'
import { createRolloutLedger, createRolloutStore, keepRollouts } from './rollouts/index.ts'
import { createRunningTenants, createTenantStore } from './tenants/index.ts'
import {
  closeLedger,
  createHomeReader,
  createHomeReadingStore,
  createLedgerClosing,
  createUsagePostings,
  createUsageLedger,
  createUsageReader,
  createUsageSources,
  readHomes,
} from './usage/index.ts'
import { createWarmPoolStore, keepWarmPools } from './warm-pool/index.ts'
import {
  createHostNames,
  createPublishedSource,
  internalRoutes,
  requestTls,
  WatchHub,
  type PublishedSource,
} from './watch/index.ts'
import {
  createSend,
  createTargetCheck,
  createWebhookOutbox,
  createWebhookStore,
  dispatchWebhooks,
} from './webhooks/index.ts'

/** What is asked of gateways and runtimes. */
export type Probe = ReturnType<typeof createRegionProbe>

/** What is outside of the control plane. */
export interface Outside {
  clock: Clock
  /** Uniform in [0, 1). */
  random: () => number
  log: Logger
  failpoint: Failpoint
  /** Calls gateways and runtimes. Webhooks are sent otherwise, to checked addresses alone. */
  fetch: typeof fetch
  /** All addresses of a host name. @throws Error when there are none */
  resolve: (hostname: string) => Promise<string[]>
  /** Asks gateways and runtimes; without it, over HTTP. */
  probe?: (published: PublishedSource) => Probe
  /** Without it, a region is as its configuration says. */
  openRegion?: (options: RegionOptions) => Region
  /** Told of every route, with each of its methods. */
  onRoute?: (route: { method: string; url: string }) => void
}

interface LeadOptions {
  onLead?: (leadership: Leadership) => void
  sweepMilliseconds?: number
  /** False: tenants are reconciled, and nothing else is done. */
  hasJobs?: boolean
}

/** A control plane that serves nobody yet. */
export interface ControlPlane {
  /** Ready to listen. */
  app: FastifyInstance
  keys: PlatformKeyStore
  record: RecordWrite
  billing: BillingParts
  seal: Seal
  published: PublishedSource
  reconcileStore: ReconcileStore
  /** Follows what others write, until the signal aborts. */
  follow(signal: AbortSignal): Promise<void>
  /** Leads whenever no other control plane does, until the signal aborts. */
  lead(signal: AbortSignal, options?: LeadOptions): Promise<void>
  /** Stops listening and ends all connections to databases; `follow` and `lead` must have returned. */
  close(): Promise<void>
}

/** Migrates the control database and puts everything together. @throws ConfigurationError */
export async function openControlPlane(config: Config, outside: Outside): Promise<ControlPlane> {
  const { clock, log, random } = outside
  const now = () => clock.now()
  const violation = (error: Error) => log.warn({ err: error }, error.message)
  const applied = await migrate(config.controlDatabaseUrl, await readMigrations())
  if (applied.length > 0) log.info({ migrations: applied }, 'migrations applied')

  const seal = createSeal(config.masterKey)
  const database = openDatabase(config.controlDatabaseUrl)
  const stores = { database, seal, now }
  const record = createRecordWrite(database, now)
  await rejectUnknownRegions(database, config.regions)
  await recordRegions(database, config.regions)
  await recordRateLimits(database, config.rateLimits)
  const keys = createPlatformKeyStore(stores)
  if (await makeFirstKey(keys, record, config.platformKeyFile))
    log.info({ file: config.platformKeyFile }, 'the first platform key was made')

  const migrations = await loadHomeMigrations(config.homeMigrations)
  const installation = await nameInstallation(database, config.installation)
  const homes = new Map(config.regions.map((region) => [region.id, new HomeDatabases(region.postgres_url, migrations)]))
  const openRegion = (region: RegionConfig): Region => {
    const shared = homes.get(region.id)
    if (shared === undefined) throw new Error(`the region ${region.id} has no shared databases`)
    const engine =
      region.docker === undefined
        ? undefined
        : createContainerEngine({
            name: 'docker',
            installation,
            host: hostOf(region.docker),
            sleep: (milliseconds, signal) => clock.sleep(milliseconds, signal),
          })
    const options = { config: region, engine, homes: shared, migrations, internalToken: config.internalToken, clock }
    return (outside.openRegion ?? createRegion)(options)
  }
  const regions = new Map(config.regions.map((region) => [region.id, openRegion(region)]))
  const published = createPublishedSource(database, seal, config.regions, config.maxUploadBytes, now)
  const probe = outside.probe?.(published) ?? createRegionProbe(config.internalToken, outside.fetch)
  const changes = new ChangeFeed({ url: config.controlDatabaseUrl, database, onError: violation })
  const hub = new WatchHub(published, violation)
  const ledger = createUsageLedger(database, now)
  const plans = createPlanStore(database)
  const billing = openBilling(database, config.billing, now)
  if (config.billing !== undefined)
    await checkBilling(
      billing,
      config.billing,
      (await plans.list()).map(({ id }) => id),
    )
  let pdfFonts: Promise<PdfFonts> | undefined
  const conditions = createRegionConditions(clock)
  const metrics = createMetrics(conditions, now)
  const tenants = createTenantStore(stores)
  const reconcileStore = createReconcileStore(database, seal, now)
  const statusSource = { regions, store: reconcileStore, clock }
  const webhookTargets = { reachable: config.webhooksMayReach, resolve: outside.resolve }
  const backups = await openBackups()

  async function openBackups() {
    if (config.backups === undefined) return undefined
    await checkDirectory(config.backups)
    const target = createDirectoryTarget(config.backups, installation)
    const records = createBackupRecords({ seal, installation })
    return { target, records, unknown: createUnknownBackups(target, records) }
  }

  /** What the leader does beside reconciling. */
  const jobs = (): ((leadership: Leadership) => Promise<void>)[] => {
    const keeping = { regions, probe, clock, log }
    const running = createRunningTenants(database)
    const homeReading = { ...keeping, store: createHomeReadingStore(database), ledger, measure: metrics.metering.homes }
    return [
      ...(backups === undefined
        ? []
        : [
            keepBackups({
              ...keeping,
              target: backups.target,
              records: backups.records,
              ledger: createBackupLedger(database, seal, now),
              tenant: (id) => reconcileStore.snapshot(id),
              readHome: createHomeReader(homeReading).readNow,
              migrations,
              measure: metrics.backups,
              found: metrics.foundBackups,
            }),
          ]),
      keepWarmPools({ ...keeping, store: createWarmPoolStore(database, seal, now), measure: metrics.warmPool }),
      pauseIdleTenants({ ...keeping, store: { ...running, ...createPauseStore(database, now) } }),
      watchStorage({ ...keeping, store: running, measure: metrics.storage }),
      watchHomes({ ...keeping, store: reconcileStore }),
      checkDatabaseGrants({ servers: homes, clock, log }),
      freeNotificationQueues({ servers: homes, clock, log }),
      watchDisks({ ...keeping, store: createDiskWatchStore(database, now) }),
      dispatchWebhooks({
        ...keeping,
        outbox: createWebhookOutbox(database, seal, now),
        send: createSend({ ...webhookTargets, timeoutMilliseconds: 15_000 }),
        random,
        measure: metrics.metering.webhooks,
      }),
      readHomes(homeReading),
      closeLedger({ closing: createLedgerClosing(database, now), clock, measure: metrics.metering.ledger, log }),
      watchQuotas({ ...keeping, store: createQuotaWatchStore(database, now) }),
      keepRollouts({ ...keeping, ledger: createRolloutLedger(database, now) }),
      ...(config.billing === undefined
        ? []
        : [closeMonths({ ...billing, config: config.billing, clock, measure: metrics.metering.invoices, log })]),
    ]
  }

  const app = await buildApp({
    regions: config.regions,
    record,
    responses: createStoredResponses(stores),
    tenants,
    plans,
    keys,
    audit: createAuditLog(database),
    rollouts: createRolloutStore(stores),
    backups: { store: createBackupStore(stores), kept: backups },
    usageSources: createUsageSources(stores),
    usage: createUsageReader({
      ...statusSource,
      books: createUsagePostings(database),
      tenants,
      plans,
      history: billing.history,
      probe,
    }),
    stored: createStoredReader({ ...statusSource, probe }),
    webhooks: createWebhookStore(stores),
    forbiddenAddress: createTargetCheck(webhookTargets),
    billing: billing.billing,
    invoices: billing.invoices,
    adjustments: billing.adjustments,
    history: billing.history,
    pdfFonts: () => (pdfFonts ??= loadPdfFonts()),
    health: createHealthReader({ ...statusSource, probe }),
    drift: createDriftReader(statusSource),
    regionCondition: (region) => conditions.of(region),
    engineOf: (region) => regions.get(region)?.engine,
    changes,
    ping: () =>
      database.$queryRaw`select 1`.then(
        () => true,
        () => false,
      ),
    now,
    clock,
    deleteGraceSeconds: config.deleteGraceSeconds,
    internalToken: config.internalToken,
    logger: log,
    onRoute: outside.onRoute,
    internal: async (instance) => {
      await instance.register(internalRoutes({ hub, ledger, tenants, record, now }))
      await instance.register(leaseRoutes(measuredLeases(createRequestLeases(database, now), metrics.metering.leases)))
      await instance.register(requestTls({ regions: config.regions, hosts: createHostNames(database) }))
    },
    metrics,
  })
  changes.subscribe(hub.onChange)

  return {
    app,
    keys,
    record,
    billing,
    seal,
    published,
    reconcileStore,

    async follow(signal) {
      const stopPings = clock.every(watchPingSeconds * 1000, () => hub.ping())
      await changes.run(signal)
      stopPings()
    },

    lead: (signal, { onLead = () => undefined, hasJobs = true, ...options } = {}) =>
      lead(
        { url: config.controlDatabaseUrl, onError: violation },
        (leadership) => {
          log.info({ epoch: String(leadership.epoch) }, 'leading')
          onLead(leadership)
          return control(
            {
              store: reconcileStore,
              regions,
              homeVersion: migrationsFingerprint(migrations),
              conditions,
              probe,
              changes,
              failpoint: outside.failpoint,
              clock,
              random,
              log,
              measure: metrics.controller,
              orphanGraceSeconds: config.orphanGraceSeconds,
              housekeeping: hasJobs ? jobs() : [],
              ...options,
            },
            leadership,
          )
        },
        signal,
      ),

    async close() {
      await app.close()
      await Promise.all([...homes.values()].map((shared) => shared.close()))
      await database.$disconnect()
    },
  }
}

/** A control plane that serves. */
export interface RunningControlPlane {
  /** Answers the requests in progress, ends its loops, and closes what it has opened. */
  stop(): Promise<void>
}

/** Opens a control plane, follows, leads and listens. @throws ConfigurationError */
export async function startControlPlane(config: Config, outside: Outside): Promise<RunningControlPlane> {
  const plane = await openControlPlane(config, outside)
  const stopping = new AbortController()
  const loops = Promise.all([plane.follow(stopping.signal), plane.lead(stopping.signal)])
  await plane.app.listen({ host: config.host, port: config.port })
  outside.log.info({ host: config.host, port: config.port }, 'the control plane listens')
  return {
    async stop() {
      outside.log.info('stopping')
      stopping.abort()
      await plane.app.close()
      await loops
      await plane.close()
    },
  }
}

function hostOf({ host, tls_directory: tlsDirectory }: NonNullable<RegionConfig['docker']>) {
  return dockerHost({ host, ...(tlsDirectory === undefined ? {} : { tlsDirectory }) })
}

/** Kept in a file, because it is shown nowhere else; written before it is valid, so that no crash loses it. @returns whether it was made */
async function makeFirstKey(keys: PlatformKeyStore, record: RecordWrite, file: string | undefined): Promise<boolean> {
  if (file === undefined) return false
  if (
    (await keys.list()).some(
      (key) => key.scope === 'admin' && key.revokedAt === undefined && key.expiresAt === undefined,
    )
  )
    return false
  const text = newPlatformKey()
  await writeFile(file, `${text}\n`, { mode: 0o600 })
  return record({ keyId: 'system' }, (write) => keys.createFirst(text, write))
}
