// The control plane, assembled from its folders. Its environment, for example time and other machines, is an argument:
// `main.ts` passes the real one, and tests pass their own.
import { hasAddress, listenBacklog, watchPingSeconds } from '@tenantry/contract'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { buildApp } from './app.ts'
import { createAuditLog, createOldEntries, removeOldEntries } from './audit/index.ts'
import { backupJobs, createBackupStore, createRuntimeFiles, openBackupStorage } from './backups/index.ts'
import {
  checkBilling,
  closeMonths,
  loadPdfFonts,
  openBilling,
  type BillingParts,
  type PdfFonts,
} from './billing/index.ts'
import { createBlockedAddressStore } from './blocked-addresses/index.ts'
import { issuingRoutes, openAuthority } from './certificates/index.ts'
import { keepEtcdCredentials } from './clusters/index.ts'
import type { Config } from './config.ts'
import { createConsoleSessionStore } from './console-sessions/index.ts'
import { createDiskWatchStore, watchDisks, watchStorage } from './disk/index.ts'
import { createDriftReader } from './drift/index.ts'
import { openEngine } from './open-engine.ts'
import { createFleetStore } from './fleet/index.ts'
import { createHealthReader, createStoredReader, watchHomes } from './health/index.ts'
import { createHostStore, measureHosts } from './hosts/index.ts'
import { HomeDatabases, loadHomeMigrations, migrationsFingerprint } from './homes/index.ts'
import { createInternalTokenRecord, recordInternalToken } from './internal-token/index.ts'
import { createFirstKey, createKeySubjects, createPlatformKeyStore, type PlatformKeyStore } from './keys/index.ts'
import { createSealedValues, rejectUnknownMasterKey, reseal } from './master-key/index.ts'
import { createMetrics } from './metrics.ts'
import { createPauseStore, pauseIdleTenants } from './pause/index.ts'
import { createPlanStore, recordRateLimits, recordRegions, rejectUnknownRegions } from './plans/index.ts'
import { moveHomes } from './moves/index.ts'
import { ChangeFeed } from './platform/change-feed.ts'
import type { Clock } from './platform/clock.ts'
import { checkDatabaseGrants } from './platform/database-grants.ts'
import { isReachable, openDatabase } from './platform/database.ts'
import { nameInstallation } from './platform/installation.ts'
import { createStoredResponses } from './platform/stored-responses.ts'
import { lead, type Leadership } from './platform/leader.ts'
import { migrate, readMigrations } from './platform/migrations.ts'
import { createRecordWrite, type RecordWrite } from './platform/recorded-write.ts'
import { createSeal, type Seal } from './platform/seal.ts'
import { createQuotaWatchStore, createRequestLeases, leaseRoutes, measuredLeases, watchQuotas } from './quotas/index.ts'
import {
  control,
  createReconcileStore,
  createRoomCheck,
  createRoomStore,
  createRegion,
  createRegionProbe,
  type Failpoint,
  type ReconcileStore,
  type Region,
  type RegionOptions,
  openRegionConditions,
} from './reconcile/index.ts'
import { superuserOf, type RegionConfig } from './regions/index.ts'
import { openRebalances, rebalanceJobs } from './rebalance/index.ts'
import { createRolloutLedger, createRolloutStore, runRollouts } from './rollouts/index.ts'
import { openSessions } from './sessions/index.ts'
import { createSpendingStore, watchSpending } from './spending/index.ts'
import {
  createPasswordRequests,
  createPasswordServers,
  keepSuperuserPasswords,
  replaceSuperuserPasswords,
} from './superuser-passwords/index.ts'
import { createOldOperations, createRunningTenants, createTenantStore, deleteOldOperations } from './tenants/index.ts'
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
import { createWarmPoolStore, runWarmPools } from './warm-pool/index.ts'
import {
  createHostNames,
  createPublishedSource,
  createWatches,
  internalRoutes,
  requestTls,
  type PublishedSource,
} from './watch/index.ts'
import {
  createSend,
  createTargetCheck,
  createWebhookOutbox,
  createWebhookStore,
  dispatchWebhooks,
} from './webhooks/index.ts'

/** Calls of the control plane to gateways and runtimes. */
export type Probe = ReturnType<typeof createRegionProbe>

/** The environment of the control plane. */
export interface ControlPlaneDeps {
  clock: Clock
  /** Returns a uniform random number in [0, 1). */
  random: () => number
  log: Logger
  failpoint: Failpoint
  /** Calls gateways and runtimes. Webhooks use another client, which connects to checked addresses only. */
  fetch: typeof fetch
  /** Returns all addresses of a host name. @throws Error if it has none */
  resolve: (hostname: string) => Promise<string[]>
  /** Creates the probe of gateways and runtimes; by default, over HTTP. */
  probe?: (published: PublishedSource) => Probe
  /** Opens a region; by default, from its configuration. */
  openRegion?: (options: RegionOptions) => Region
  /** Called for each method of every route. */
  onRoute?: (route: { method: string; url: string }) => void
}

interface LeadOptions {
  onLead?: (leadership: Leadership) => void
  sweepMilliseconds?: number
  /** Whether the leader's other jobs run; false for the reconciliation of tenants only. */
  hasJobs?: boolean
}

/** A control plane that does not serve requests yet. */
export interface ControlPlane {
  /** The API, ready to listen. */
  app: FastifyInstance
  keys: PlatformKeyStore
  record: RecordWrite
  billing: BillingParts
  seal: Seal
  published: PublishedSource
  reconcileStore: ReconcileStore
  /** Follows the changes of other processes until the signal aborts. */
  follow(signal: AbortSignal): Promise<void>
  /** Leads while no other control plane does, until the signal aborts. */
  lead(signal: AbortSignal, options?: LeadOptions): Promise<void>
  /** Stops listening and ends all connections to databases. `follow` and `lead` must have returned. */
  close(): Promise<void>
}

/** Migrates the control database and assembles the control plane. @throws ConfigurationError */
export async function openControlPlane(configured: Config, deps: ControlPlaneDeps): Promise<ControlPlane> {
  const { clock, log, random } = deps
  const now = () => clock.now()
  const warn = (error: Error) => log.warn({ err: error }, error.message)
  const applied = await migrate(configured.controlDatabaseUrl, await readMigrations())
  if (applied.length > 0) log.info({ migrations: applied }, 'Migrations were applied.')
  const seal = createSeal(...configured.masterKeys)
  const database = openDatabase(configured.controlDatabaseUrl)
  await rejectUnknownMasterKey(database, seal)
  const stores = { database, seal, now }
  const record = createRecordWrite(database, now)
  await rejectUnknownRegions(database, configured.regions)
  await recordRegions(database, configured.regions)
  const withPasswords = await keepSuperuserPasswords(database, seal, configured.regions)
  await recordRateLimits(database, configured.rateLimits)
  const keys = createPlatformKeyStore(stores)
  if (await createFirstKey(keys, record, configured.platformKeyFile))
    log.info({ file: configured.platformKeyFile }, 'The first platform key was created.')
  const migrations = await loadHomeMigrations(configured.homeMigrations)
  const installation = await nameInstallation(database, configured.installation)
  const authority = await openAuthority(stores, record, installation)
  const config = { ...configured, regions: await keepEtcdCredentials({ ...stores, authority }, withPasswords) }
  const { maxObjects, internalToken } = config
  const openHomes = (region: RegionConfig) => new HomeDatabases(superuserOf(region), migrations, maxObjects)
  const homes = new Map(config.regions.map((region) => [region.id, openHomes(region)]))
  const openRegion = (region: RegionConfig): Region => {
    const shared = homes.get(region.id)
    if (shared === undefined) throw new Error(`The region "${region.id}" has no shared databases.`)
    const engine = openEngine(region, installation, clock)
    const options = { config: region, engine, homes: shared, migrations, maxObjects, internalToken, clock }
    return (deps.openRegion ?? createRegion)(options)
  }
  const regions = new Map(config.regions.map((region) => [region.id, openRegion(region)]))
  const published = createPublishedSource(database, seal, config.regions, config, now)
  const probe = deps.probe?.(published) ?? createRegionProbe(config.internalToken, deps.fetch)
  const changes = new ChangeFeed({ url: config.controlDatabaseUrl, database, onError: warn })
  const blockedAddresses = createBlockedAddressStore(database, now)
  const watches = createWatches(published, blockedAddresses, [...regions.keys()], now, warn)
  const ledger = createUsageLedger(database, now)
  const plans = createPlanStore(database)
  const billing = openBilling(database, config.billing, now)
  const planIds = async () => (await plans.list()).map(({ id }) => id)
  if (config.billing !== undefined) await checkBilling(billing, config.billing, await planIds())
  let pdfFonts: Promise<PdfFonts> | undefined
  const regionConditions = openRegionConditions({ database, clock, log, now })
  const metrics = createMetrics(regionConditions.conditions, now)
  const sessions = openSessions(config, homes, { database, seal, measures: metrics.sessions, clock, log })
  const tenants = createTenantStore(stores)
  const spending = createSpendingStore(stores)
  const hosts = createHostStore(database, now)
  const reconcileStore = createReconcileStore(database, seal, now)
  const observationDeps = { regions, store: reconcileStore, clock }
  const webhookTargets = { reachable: config.webhooksMayReach, resolve: deps.resolve }
  const backups = await openBackupStorage(config, { ...stores, installation, clock })

  /** Returns the leader's jobs in addition to reconciliation. */
  const jobs = (): ((leadership: Leadership) => Promise<void>)[] => {
    const jobDeps = { regions, probe, changes, clock, log }
    const homeDeps = { tenant: (id: string) => reconcileStore.snapshot(id), migrations }
    const runtimeFiles = createRuntimeFiles(internalToken, deps.fetch, clock)
    const moveDeps = { services: reconcileStore, runtimeFiles, config, failpoint: deps.failpoint }
    const running = createRunningTenants(database)
    const servers = createPasswordServers({ ...stores, ...config })
    const homeReading = { ...jobDeps, store: createHomeReadingStore(database), ledger, measure: metrics.metering.homes }
    return [
      ...backupJobs(backups, {
        ...jobDeps,
        ...homeDeps,
        ...stores,
        ...moveDeps,
        random,
        readHome: createHomeReader(homeReading).readNow,
        measures: metrics,
      }),
      moveHomes({ ...jobDeps, ...homeDeps, ...stores, ...moveDeps }),
      reseal({ values: createSealedValues(database, seal, now), seal, clock, log }),
      recordInternalToken({ internalToken, record: createInternalTokenRecord(database, now), clock, log }),
      replaceSuperuserPasswords({ servers, failpoint: deps.failpoint, clock, log }),
      runWarmPools({ ...jobDeps, store: createWarmPoolStore(database, seal, now), measure: metrics.warmPool }),
      pauseIdleTenants({ ...jobDeps, store: { ...running, ...createPauseStore(database, now) } }),
      watchStorage({ ...jobDeps, store: running, measure: metrics.storage }),
      watchHomes({ ...jobDeps, store: reconcileStore }),
      measureHosts({ ...jobDeps, ...moveDeps, store: hosts, placements: reconcileStore.placements }),
      checkDatabaseGrants({ servers: homes, clock, log }),
      ...sessions.jobs,
      watchDisks({ ...jobDeps, store: createDiskWatchStore(database, now) }),
      dispatchWebhooks({
        ...jobDeps,
        outbox: createWebhookOutbox(database, seal, now),
        send: createSend({ ...webhookTargets, timeoutMilliseconds: 15_000 }),
        random,
        measure: metrics.metering.webhooks,
      }),
      readHomes(homeReading),
      closeLedger({ closing: createLedgerClosing(database, now), clock, measure: metrics.metering.ledger, log }),
      removeOldEntries({ store: createOldEntries(database, now), days: config.auditDays, clock, log }),
      deleteOldOperations({ store: createOldOperations(database), days: config.operationDays, clock, log }),
      watchQuotas({ ...jobDeps, store: createQuotaWatchStore(database, now) }),
      ...regionConditions.jobs,
      runRollouts({ ...jobDeps, ledger: createRolloutLedger(database, now) }),
      ...rebalanceJobs({ ...jobDeps, ...stores, ...moveDeps, tenants, measure: metrics.sharedDatabase }),
      ...(config.billing === undefined
        ? []
        : [
            closeMonths({ ...billing, config: config.billing, clock, measure: metrics.metering.invoices, log }),
            watchSpending({ store: spending, billing: billing.billing, clock, log }),
          ]),
    ]
  }

  const app = await buildApp({
    regions: config.regions,
    record,
    responses: createStoredResponses(stores),
    tenants,
    plans,
    keys,
    keySubjects: createKeySubjects(database),
    isTrustedProxy: (address) => hasAddress(config.trustedProxies, address),
    consoleSessions: createConsoleSessionStore(database, now),
    consoleFiles: config.consoleFiles,
    fleet: createFleetStore({ database, now, proofDays: config.proofDays }),
    prices: config.billing,
    audit: createAuditLog(database),
    rollouts: createRolloutStore(stores),
    ...openRebalances({ ...stores, ...observationDeps }),
    backups: { store: createBackupStore(stores), storage: backups },
    usageSources: createUsageSources(stores),
    usage: createUsageReader({
      ...observationDeps,
      postings: createUsagePostings(database),
      tenants,
      plans,
      history: billing.history,
      probe,
    }),
    stored: createStoredReader({ ...observationDeps, probe }),
    webhooks: createWebhookStore(stores),
    blockedAddresses,
    authority,
    superuserPasswords: createPasswordRequests(seal),
    forbiddenAddress: createTargetCheck(webhookTargets),
    billing: billing.billing,
    invoices: billing.invoices,
    adjustments: billing.adjustments,
    spending,
    history: billing.history,
    pdfFonts: () => (pdfFonts ??= loadPdfFonts()),
    health: createHealthReader({ ...observationDeps, probe }),
    drift: createDriftReader(observationDeps),
    hosts,
    placements: reconcileStore.placements,
    ...createRoomCheck({ ...observationDeps, room: createRoomStore(database) }),
    regionConditions: regionConditions.read,
    engineOf: (region) => regions.get(region)?.engine,
    sharedServer: (region) => sessions.sharedServer(region),
    changes,
    ping: () => isReachable(database),
    now,
    clock,
    deleteGraceSeconds: config.deleteGraceSeconds,
    internalToken,
    logger: log,
    onRoute: deps.onRoute,
    internal: async (instance) => {
      await instance.register(internalRoutes({ watches, ledger, tenants, record, now }))
      await instance.register(leaseRoutes(measuredLeases(createRequestLeases(database, now), metrics.metering.leases)))
      await instance.register(issuingRoutes({ authority, regions: config.regions, now }))
      await instance.register(requestTls({ regions: config.regions, hosts: createHostNames(database) }))
    },
    metrics,
  })
  changes.subscribe(watches.onChange)

  return {
    app,
    keys,
    record,
    billing,
    seal,
    published,
    reconcileStore,

    async follow(signal) {
      const stopPings = clock.every(watchPingSeconds * 1000, () => watches.ping())
      await changes.run(signal)
      stopPings()
    },

    lead: (signal, { onLead = () => undefined, hasJobs = true, ...options } = {}) =>
      lead(
        { url: config.controlDatabaseUrl, onError: warn },
        (leadership) => {
          log.info({ epoch: String(leadership.epoch) }, 'This control plane leads.')
          onLead(leadership)
          return control(
            {
              store: reconcileStore,
              regions,
              homeVersion: migrationsFingerprint(migrations),
              conditions: regionConditions.conditions,
              probe,
              changes,
              failpoint: deps.failpoint,
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
      await Promise.all([...homes.values(), sessions].map((shared) => shared.close()))
      await database.$disconnect()
    },
  }
}

/** A control plane that serves requests. */
export interface RunningControlPlane {
  /** Completes the requests in progress, ends its loops, and closes its connections. */
  stop(): Promise<void>
}

/** Opens a control plane, follows, leads and listens. @throws ConfigurationError */
export async function startControlPlane(config: Config, deps: ControlPlaneDeps): Promise<RunningControlPlane> {
  const plane = await openControlPlane(config, deps)
  const stopping = new AbortController()
  const loops = Promise.all([plane.follow(stopping.signal), plane.lead(stopping.signal)])
  await plane.app.listen({ host: config.host, port: config.port, backlog: listenBacklog })
  deps.log.info({ host: config.host, port: config.port }, 'The control plane listens.')
  return {
    async stop() {
      deps.log.info('The control plane stops.')
      stopping.abort()
      await plane.app.close()
      await loops
      await plane.close()
    },
  }
}
