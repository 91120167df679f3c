// One tenant, from what is to what should be. Computed anew from a fresh snapshot each time, so that any interruption
// is mended by the next run.
import type { RegionConfig } from '../config.ts'
import type { HomeDatabases } from '../homes/home-databases.ts'
import type { Condition, Status } from '../tenants/tenant.ts'
import type { Failpoint } from './failpoints.ts'
import type { ReconcileStore, Snapshot } from './reconcile-store.ts'
import { untilEvery, type RegionProbe } from './region-probe.ts'

/** How long runtimes and gateways may take to show a change. */
const observeMilliseconds = 10_000

export interface TenantReconcilerDeps {
  store: ReconcileStore
  region: RegionConfig
  homes: HomeDatabases
  homeVersion: string
  probe: RegionProbe
  failpoint: Failpoint
  now: () => Date
  epoch: bigint
}

/** `again`: not before that time is there anything to do. */
export interface Outcome {
  again: Date | undefined
}

/** @throws Error with a cause when a step failed; the caller records it and tries again later */
export async function reconcileTenant(snapshot: Snapshot, deps: TenantReconcilerDeps, signal: AbortSignal): Promise<Outcome> {
  const { store, failpoint, epoch } = deps
  const busy = AbortSignal.any([signal, AbortSignal.timeout(60_000)])
  if (snapshot.operation !== undefined) {
    await failpoint('begin.before')
    await store.beginOperation(snapshot.operation.id, epoch)
    await failpoint('begin.after')
  }
  if (snapshot.desired === 'deleted') return remove(snapshot, deps, busy)
  await ensureHome(snapshot, deps)
  await observe(snapshot, deps, busy)
  return { again: snapshot.nextExpiry }
}

async function ensureHome(snapshot: Snapshot, deps: TenantReconcilerDeps): Promise<void> {
  const { store, homes, failpoint, epoch, homeVersion } = deps
  const routePhase = snapshot.desired === 'suspended' ? 'suspended' : 'ready'
  if (snapshot.homeVersion === homeVersion && (await loginWorks(snapshot, deps))) {
    // The wanted state may have changed, or only the generation: either way the watches must show it.
    await store.recordPublished(snapshot.id, { homeVersion, routePhase }, epoch)
    return
  }
  await failpoint('database.before')
  await homes.ensureDatabase(snapshot.database, () => failpoint('database.created'))
  await failpoint('database.prepared')
  await failpoint('home.before')
  const ddl = secretOf(snapshot, 'ddl_password')
  const made = await homes.createHome(snapshot.database, snapshot.id, {
    runtime: secretOf(snapshot, 'runtime_password'), ddl, admin: secretOf(snapshot, 'admin_password'),
  })
  await failpoint('home.created')
  if (made === 'to be migrated') await homes.migrateHome(snapshot.database, snapshot.id, ddl)
  await failpoint('home.migrated')
  await store.recordPublished(snapshot.id, { homeVersion, routePhase }, epoch)
  await failpoint('home.recorded')
}

/** A home that was damaged from outside is made whole by making it again; its data is never touched. */
async function loginWorks(snapshot: Snapshot, { homes }: TenantReconcilerDeps): Promise<boolean> {
  return homes.checkLogin(snapshot.database, snapshot.id, secretOf(snapshot, 'runtime_password')).then(
    () => true,
    () => false,
  )
}

/** Ready means observed: every runtime has logged in and found all well, every gateway shows the route. */
async function observe(snapshot: Snapshot, deps: TenantReconcilerDeps, signal: AbortSignal): Promise<void> {
  const { store, probe, region, failpoint, epoch } = deps
  await failpoint('observe.before')
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(observeMilliseconds)])
  const wanted = snapshot.desired === 'suspended' ? 'suspended' : 'ready'
  const unseen = { runtime: 'does not answer', gateway: 'does not answer' }
  await Promise.all([
    untilEvery(region.runtime_urls, async (url, signal) => {
      const health = await probe.tenantHealth(url, snapshot.id, signal).catch(() => undefined)
      unseen.runtime = health === undefined ? 'does not know the tenant' : `says ${health.status} at generation ${health.generation}`
      return health !== undefined && health.generation >= snapshot.generation && health.status === 'healthy'
    }, deadline).catch((cause: unknown) => {
      throw new Error(`the runtime ${unseen.runtime}`, { cause })
    }),
    untilEvery(region.gateway_internal_urls, async (url, signal) => {
      const route = await probe.route(url, snapshot.id, signal).catch(() => undefined)
      unseen.gateway = route === undefined ? 'has no route' : `has the route ${route.phase} at generation ${route.generation}`
      return route !== undefined && route.generation >= snapshot.generation && route.phase === wanted
    }, deadline).catch((cause: unknown) => {
      throw new Error(`the gateway ${unseen.gateway}`, { cause })
    }),
  ])
  await failpoint('observe.after')
  await failpoint('finish.before')
  await store.recordObserved(
    snapshot.id,
    {
      generation: snapshot.generation,
      status: wanted,
      reason: null,
      conditions: conditionsNow(deps.now(), 'True', 'Observed', ''),
      operation: snapshot.operation === undefined ? undefined : { id: snapshot.operation.id, error: null },
    },
    epoch,
  )
  await failpoint('finish.after')
}

async function remove(snapshot: Snapshot, deps: TenantReconcilerDeps, signal: AbortSignal): Promise<Outcome> {
  const { store, probe, region, failpoint, epoch } = deps
  await failpoint('delete.before')
  await store.recordPublished(snapshot.id, { homeVersion: snapshot.homeVersion ?? null, routePhase: 'deleted' }, epoch)
  await untilEvery(region.gateway_internal_urls, async (url, signal) => {
    const route = await probe.route(url, snapshot.id, signal)
    return route === undefined || route.phase === 'deleted'
  }, AbortSignal.any([signal, AbortSignal.timeout(observeMilliseconds)]))
  await failpoint('delete.unrouted')
  const due = snapshot.purgeAfter ?? deps.now()
  if (due > deps.now()) {
    const conditions = conditionsNow(deps.now(), 'False', 'Deleted', `data is kept until ${due.toISOString()}`, ['Route'])
    await store.recordObserved(
      snapshot.id,
      { generation: snapshot.generation, status: 'deleting', reason: 'deleted by the operator', conditions, operation: undefined },
      epoch,
    )
    await failpoint('delete.waiting')
    return { again: due }
  }
  await purge(snapshot, deps, signal)
  return { again: undefined }
}

/** In the reverse order of making: nobody serves it, then nothing is stored, then nothing is known. */
async function purge(snapshot: Snapshot, deps: TenantReconcilerDeps, signal: AbortSignal): Promise<void> {
  const { store, homes, probe, region, failpoint, epoch } = deps
  await failpoint('purge.before')
  await store.recordPublished(snapshot.id, { homeVersion: null, routePhase: 'deleted' }, epoch)
  await untilEvery(
    region.runtime_urls,
    async (url, signal) => (await probe.tenantHealth(url, snapshot.id, signal)) === undefined,
    AbortSignal.any([signal, AbortSignal.timeout(observeMilliseconds)]),
  )
  await failpoint('purge.unpublished')
  await Promise.all(region.runtime_urls.map((url) => probe.removeData(url, snapshot.id, signal)))
  await failpoint('purge.data-removed')
  await homes.endSessions(snapshot.database, snapshot.id)
  await failpoint('purge.sessions-ended')
  await homes.dropHome(snapshot.database, snapshot.id)
  await failpoint('purge.home-dropped')
  await store.removeTenant(snapshot.id, epoch)
  await failpoint('purge.finished')
}

/** What is recorded when a run failed. */
export async function recordFailure(snapshot: Snapshot, deps: TenantReconcilerDeps, error: unknown, failures: number): Promise<void> {
  const message = publicMessage(error)
  const status: Status = snapshot.desired === 'deleted' ? 'deleting' : failures >= failedAfter ? 'failed' : snapshot.status
  await deps.store.recordObserved(
    snapshot.id,
    {
      // Not observed: the generation stays as it was.
      generation: snapshot.observedGeneration,
      status,
      reason: message,
      conditions: conditionsNow(deps.now(), 'False', 'Error', message),
      operation: snapshot.operation === undefined ? undefined : { id: snapshot.operation.id, error: message },
    },
    deps.epoch,
  )
}

const failedAfter = 3

/** What went wrong in words that may be shown: ours, never a driver's, which may hold addresses. */
function publicMessage(error: unknown): string {
  if (error instanceof Error && /^the (runtime|gateway|database) /.test(error.message)) return error.message
  return 'the home could not be brought to the wanted state; it is tried again'
}

function conditionsNow(at: Date, status: Condition['status'], reason: string, message: string, types: Condition['type'][] = ['Home', 'Database', 'Runtime', 'Route']): Condition[] {
  return types.map((type) => ({ type, status, reason, message, observed_at: at.toISOString() }))
}

function secretOf(snapshot: Snapshot, kind: keyof Snapshot['secrets']): string {
  const [newest] = snapshot.secrets[kind]
  if (newest === undefined) throw new Error(`${snapshot.id} has no ${kind}`)
  return newest
}
