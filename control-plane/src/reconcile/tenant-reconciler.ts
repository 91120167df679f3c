// One tenant, from what is to what should be. Computed anew from a fresh snapshot each time, so that any interruption
// is mended by the next run.
import type { RoutePhase } from '@tenantry/contract'
import type { Clock } from '../platform/clock.ts'
import { planSteps, EngineError } from '../engines/index.ts'
import { HomeError } from '../homes/index.ts'
import type { Stack } from '../stacks/index.ts'
import type { Status } from '../tenants/index.ts'
import { conditionsOf, lossCondition, reasonOf } from './conditions.ts'
import type { Failpoint } from './failpoints.ts'
import { hasFailed, type FailureSeries } from './failure-series.ts'
import { healthInWords } from './health-in-words.ts'
import type { ReconcileStore, Snapshot } from './reconcile-store.ts'
import { LeadershipLost } from '../platform/leadership-lost.ts'
import { isKnown, observeOnly, type Sight } from './report-observed.ts'
import { isDedicated, type Region } from './region.ts'
import { untilEvery, type RegionProbe } from './region-probe.ts'

/** How long runtimes and gateways may take to show a change. */
const observeMilliseconds = 10_000
/** A runtime that was just made may take longer. */
const firstAnswerMilliseconds = 30_000
/** One whose home is well answers sooner. */
const witnessMilliseconds = 3_000
const runMilliseconds = 90_000
/** Between two looks at a tenant that is not well and is left so: somebody may put it right by hand at any time. */
const recoveryMilliseconds = 5_000

export interface TenantReconcilerDeps {
  store: ReconcileStore
  region: Region
  homeVersion: string
  probe: RegionProbe
  failpoint: Failpoint
  clock: Clock
  epoch: bigint
  /**
   * Of tenants whose network could not be made there. None is tried there again before its move was heard of: a move that was
   * given up may come later, and must find no network.
   */
  refusedSubnets: Map<string, number>
}

/** `again`: not before that time is there anything to do. `repaired`: something had changed that nobody had asked for. */
export interface Outcome {
  again: Date | undefined
  repaired: boolean
}

/** A settled tenant could not be looked at. That says nothing of the tenant, and is not recorded as if it did. */
export class LookFailed extends Error {}

/** @throws Error with a cause when a step failed; the caller records it and tries again later */
export async function reconcileTenant(
  snapshot: Snapshot,
  deps: TenantReconcilerDeps,
  signal: AbortSignal,
): Promise<Outcome> {
  const { store, failpoint, epoch, clock } = deps
  // Its volumes are being filled; it is begun by who fills them.
  if (snapshot.desired === 'restoring') return { again: undefined, repaired: false }
  const busy = AbortSignal.any([signal, clock.timeout(runMilliseconds)])
  if (isUnchanged(snapshot, deps)) {
    if (snapshot.driftPolicy !== 'repair') return report(snapshot, deps, busy)
    if (wasSeenAsWanted(snapshot) && !(await hasDrifted(snapshot, deps, busy)))
      return { again: snapshot.nextExpiry, repaired: false }
  }
  if (snapshot.operation !== undefined) {
    await failpoint('begin.before')
    await store.beginOperation(snapshot.operation.id, epoch)
    await failpoint('begin.after')
  }
  if (snapshot.desired === 'deleted') return remove(snapshot, deps, busy)
  const placed = await place(snapshot, deps, busy)
  if (snapshot.desired === 'suspended' || snapshot.desired === 'paused') await halt(placed, deps, busy)
  else await serve(placed, deps, busy)
  return {
    again: snapshot.nextExpiry,
    repaired: snapshot.operation === undefined && snapshot.generation === snapshot.observedGeneration,
  }
}

const statusOf: Record<Exclude<Snapshot['desired'], 'deleted'>, Status> = {
  active: 'ready',
  suspended: 'suspended',
  paused: 'paused',
  warm: 'warm',
  restoring: 'pending',
}

/** Of tenants that gateways know. */
const phaseOf: Partial<Record<Snapshot['desired'], RoutePhase>> = {
  active: 'ready',
  suspended: 'suspended',
  paused: 'paused',
}

/** Nothing was asked for since it was last as wanted; whether it still is shows when it is looked at. */
function isUnchanged(snapshot: Snapshot, { homeVersion }: TenantReconcilerDeps): boolean {
  const { desired, operation, generation, observedGeneration, hasExpired } = snapshot
  if (desired === 'deleted' || operation !== undefined || generation !== observedGeneration || hasExpired) return false
  // A write that was given up may have come after those that followed it.
  if (snapshot.routePhase !== (phaseOf[desired] ?? snapshot.routePhase)) return false
  // The home of one that is stopped is brought up to date when it runs again.
  const isCurrent = snapshot.homeVersion === homeVersion || desired === 'suspended' || desired === 'paused'
  return isCurrent && isDedicated(snapshot)
}

/** False: work that failed, and was not tried again before this control plane led. A full disk is nobody's work here. */
function wasSeenAsWanted({ desired, status, conditions }: Snapshot): boolean {
  if (desired === 'deleted' || status !== statusOf[desired]) return false
  return !conditions.some(({ type, status }) => status === 'False' && type !== 'Disk')
}

async function hasDrifted(snapshot: Snapshot, deps: TenantReconcilerDeps, signal: AbortSignal): Promise<boolean> {
  const sight = await look(snapshot, deps, signal)
  return sight !== undefined && planSteps(sight.stack, sight.host).length > 0
}

/** Whatever the policy leaves undone, what was seen is recorded. */
async function report(snapshot: Snapshot, deps: TenantReconcilerDeps, signal: AbortSignal): Promise<Outcome> {
  const { region, store, epoch, clock, probe } = deps
  const sight = await look(snapshot, deps, signal)
  if (sight === undefined || snapshot.desired === 'deleted') return { again: snapshot.nextExpiry, repaired: false }
  const how = { probe, clock, runtimeUrls: region.runtimeUrls(snapshot), wellStatus: statusOf[snapshot.desired] }
  const observed = await observeOnly(snapshot, sight, how, signal)
  const { isWell, ...seen } = observed
  if (!isKnown(snapshot, observed)) {
    await store
      .recordObserved(snapshot.id, { generation: snapshot.generation, ...seen, operation: undefined }, epoch)
      .catch(lookFailed)
  }
  const soon = new Date(clock.now().getTime() + recoveryMilliseconds)
  const { nextExpiry } = snapshot
  return { again: isWell || (nextExpiry !== undefined && nextExpiry < soon) ? nextExpiry : soon, repaired: false }
}

/** Undefined where the region has no engine. @throws LookFailed */
async function look(
  snapshot: Snapshot,
  { region }: TenantReconcilerDeps,
  signal: AbortSignal,
): Promise<Sight | undefined> {
  if (region.engine === undefined) return undefined
  const [stack, host] = await Promise.all([
    region.stack(snapshot, signal),
    region.engine.observe(snapshot.id, signal),
  ]).catch(lookFailed)
  return { stack, host }
}

function lookFailed(cause: unknown): never {
  if (cause instanceof LeadershipLost) throw cause
  throw new LookFailed('what exists of the tenant could not be looked at', { cause })
}

/** Where its services will stand and what they run: recorded before anything is made. */
async function place(snapshot: Snapshot, deps: TenantReconcilerDeps, signal: AbortSignal): Promise<Snapshot> {
  const { store, region, failpoint, epoch, refusedSubnets } = deps
  if (!isDedicated(snapshot)) return snapshot
  const { id, regionId } = snapshot
  let { images, subnet } = snapshot
  if (images === undefined) {
    await failpoint('place.before')
    images = await region.images(signal)
    await store.pinImages(snapshot.id, images, epoch)
    await failpoint('place.pinned')
  }
  if (subnet === undefined) {
    subnet = await store.allocateSubnet(id, regionId, region.subnets, epoch, await region.subnetsInUse(signal))
    if (subnet === undefined) throw exhausted(region)
    await failpoint('place.subnet')
  } else if (refusedSubnets.get(id) === subnet) {
    subnet = await store.moveSubnet(id, subnet, regionId, region.subnets, epoch, await region.subnetsInUse(signal))
    refusedSubnets.delete(id)
    if (subnet === undefined) throw exhausted(region)
  }
  return { ...snapshot, images, subnet }
}

function exhausted({ subnets }: Region): EngineError {
  return new EngineError('SUBNETS_EXHAUSTED', `all ${subnets} subnets of the region are taken`)
}

async function serve(snapshot: Snapshot, deps: TenantReconcilerDeps, signal: AbortSignal): Promise<void> {
  const { store, failpoint, epoch, homeVersion } = deps
  await converge(snapshot, deps, signal)
  const wasSeen = await isSeenWell(snapshot, deps, signal)
  if (!wasSeen) {
    await ensureHome(snapshot, deps, signal)
    await publishHome(snapshot, deps)
  }
  await failpoint('observe.before')
  if (isUnrouted(snapshot)) {
    if (!wasSeen) await observeRuntimes(snapshot, deps, signal, firstAnswerMilliseconds)
    await failpoint('observe.runtime')
    if (snapshot.desired === 'active') {
      await store.recordPublished(snapshot.id, { homeVersion, routePhase: 'ready' }, epoch)
      await observeRoute(snapshot, 'ready', deps, signal)
    }
  } else {
    const runtimes = wasSeen ? undefined : observeRuntimes(snapshot, deps, signal, observeMilliseconds)
    await Promise.all([runtimes, observeRoute(snapshot, 'ready', deps, signal)])
  }
  await failpoint('observe.after')
  await finish(snapshot, deps)
}

/** A runtime of the tenant's own may still be starting: it is seen well before anybody is sent to it. */
function isUnrouted(snapshot: Snapshot): boolean {
  return isDedicated(snapshot) && snapshot.routePhase !== 'ready'
}

async function publishHome(
  snapshot: Snapshot,
  { store, failpoint, homeVersion, epoch }: TenantReconcilerDeps,
): Promise<void> {
  await store.recordPublished(
    snapshot.id,
    { homeVersion, routePhase: isUnrouted(snapshot) ? snapshot.routePhase : 'ready' },
    epoch,
  )
  await failpoint('home.recorded')
}

/**
 * Of a home that was made before, the runtime that logs in to it is the best witness. To ask inside the containers takes
 * processes there, just when the services start: that is left for when the runtime finds something wrong.
 */
async function isSeenWell(snapshot: Snapshot, deps: TenantReconcilerDeps, signal: AbortSignal): Promise<boolean> {
  if (!isDedicated(snapshot) || snapshot.homeVersion !== deps.homeVersion) return false
  await publishHome(snapshot, deps)
  try {
    await observeRuntimes(snapshot, deps, signal, witnessMilliseconds)
    return true
  } catch {
    signal.throwIfAborted()
    return false
  }
}

/** Nobody is served any more; then what runs for it alone is stopped. */
async function halt(snapshot: Snapshot, deps: TenantReconcilerDeps, signal: AbortSignal): Promise<void> {
  const { store, failpoint, epoch } = deps
  const phase: RoutePhase = snapshot.desired === 'paused' ? 'paused' : 'suspended'
  if (!isDedicated(snapshot)) await ensureHome(snapshot, deps, signal)
  await failpoint('halt.before')
  await store.recordPublished(
    snapshot.id,
    { homeVersion: isDedicated(snapshot) ? (snapshot.homeVersion ?? null) : deps.homeVersion, routePhase: phase },
    epoch,
  )
  await observeRoute(snapshot, phase, deps, signal)
  await failpoint('halt.unrouted')
  await converge(snapshot, deps, signal)
  await failpoint('halt.stopped')
  await finish(snapshot, deps)
}

async function converge(snapshot: Snapshot, deps: TenantReconcilerDeps, signal: AbortSignal): Promise<void> {
  const { store, region, failpoint, epoch } = deps
  if (!isDedicated(snapshot)) return
  if (region.engine === undefined) throw new EngineError('ENGINE_FAILED', 'the region has no engine for services')
  const stack: Stack = await region.stack(snapshot, signal)
  await step(snapshot, 'services', deps)
  await failpoint('converge.before')
  try {
    await region.engine.converge(stack, signal, async (edge) => {
      if (edge === 'before') await store.confirmLead(epoch)
      await failpoint(edge === 'before' ? 'converge.step-before' : 'converge.step-after')
    })
  } catch (error) {
    // A stranger's network is there, or one that the Engine keeps but does not show. The next run moves the tenant.
    if (error instanceof EngineError && error.code === 'SUBNET_TAKEN' && snapshot.subnet !== undefined)
      deps.refusedSubnets.set(snapshot.id, snapshot.subnet)
    throw error
  }
  await failpoint('converge.after')
}

async function ensureHome(snapshot: Snapshot, deps: TenantReconcilerDeps, signal: AbortSignal): Promise<void> {
  const { region, failpoint, homeVersion } = deps
  const home = region.home(snapshot)
  if (isDedicated(snapshot)) await region.awaitDatabase(snapshot, signal)
  if (snapshot.homeVersion === homeVersion && (await loginWorks(snapshot, deps))) return
  await step(snapshot, 'home', deps)
  await failpoint('database.before')
  // Work in a home is not cut short; between two steps of it a run can give way.
  signal.throwIfAborted()
  await home.prepare(() => failpoint('database.created'))
  await failpoint('database.prepared')
  signal.throwIfAborted()
  await failpoint('home.before')
  const passwords = {
    runtime: secretOf(snapshot, 'runtime_password'),
    ddl: secretOf(snapshot, 'ddl_password'),
    admin: secretOf(snapshot, 'admin_password'),
  }
  const made =
    snapshot.homeVersion === undefined
      ? await home.create(snapshot.id, passwords)
      : await home.mend(snapshot.id, passwords)
  if (made === 'missing') {
    throw new EngineError(
      'HOME_MISSING',
      'the home is gone from its database, and with it what it held; no empty one is made in its place',
    )
  }
  await failpoint('home.created')
  signal.throwIfAborted()
  if (made === 'to be migrated') await migrate(snapshot, deps)
  await failpoint('home.migrated')
}

/** What was lost is recorded at once: the next run finds the home whole. */
async function migrate(snapshot: Snapshot, { region, store, clock, epoch }: TenantReconcilerDeps): Promise<void> {
  const { lost } = await region.home(snapshot).migrate(snapshot.id)
  if (lost.length > 0) await store.recordLoss(snapshot.id, lossCondition(lost, clock.now()), epoch)
}

/** A home that was damaged from outside is made whole by making it again; its data is never touched. */
async function loginWorks(snapshot: Snapshot, { region }: TenantReconcilerDeps): Promise<boolean> {
  return region
    .home(snapshot)
    .check(snapshot.id, secretOf(snapshot, 'runtime_password'))
    .then(
      () => true,
      () => false,
    )
}

/** Ready means observed: every runtime has logged in and found all well. */
async function observeRuntimes(
  snapshot: Snapshot,
  { region, probe, clock }: TenantReconcilerDeps,
  signal: AbortSignal,
  milliseconds: number,
): Promise<void> {
  let seen = 'does not answer'
  const agrees = async (url: string, signal: AbortSignal) => {
    const health = await probe.tenantHealth(url, snapshot.id, signal).catch(() => null)
    if (health === undefined) seen = 'does not know the tenant'
    else if (health !== null) seen = healthInWords(health)
    // One that was cut short tells nothing that the last answer did not.
    else if (!signal.aborted) seen = 'does not answer'
    return health != null && health.generation >= snapshot.generation && health.status === 'healthy'
  }
  await untilEvery(
    region.runtimeUrls(snapshot),
    agrees,
    AbortSignal.any([signal, clock.timeout(milliseconds)]),
    clock,
  ).catch((cause: unknown) => {
    throw new Error(`the runtime ${seen}`, { cause })
  })
}

/** Waits until every gateway shows the route and, of a tenant that is ready, holds what it serves the first requests from. */
async function observeRoute(
  snapshot: Snapshot,
  phase: RoutePhase,
  { region, probe, clock }: TenantReconcilerDeps,
  signal: AbortSignal,
): Promise<void> {
  let seen = 'does not answer'
  const agrees = async (url: string, signal: AbortSignal) => {
    const route = await probe.route(url, snapshot.id, signal).catch(() => undefined)
    seen = route === undefined ? 'has no route' : `has the route ${route.phase} at generation ${route.generation}`
    if (route === undefined || route.generation < snapshot.generation || route.phase !== phase) return false
    // A tenant that is ready is served while the control plane is away: from a lease that the gateway has by now.
    if (phase !== 'ready' || route.leased !== false) return true
    seen = "has the route, but no lease of the month's requests or no slots for connections"
    return false
  }
  await untilEvery(
    region.config.gateway_internal_urls,
    agrees,
    AbortSignal.any([signal, clock.timeout(observeMilliseconds)]),
    clock,
  ).catch((cause: unknown) => {
    throw new Error(`the gateway ${seen}`, { cause })
  })
}

async function finish(snapshot: Snapshot, { store, failpoint, clock, epoch }: TenantReconcilerDeps): Promise<void> {
  await failpoint('finish.before')
  await store.recordObserved(
    snapshot.id,
    {
      generation: snapshot.generation,
      status: snapshot.desired === 'deleted' ? 'deleting' : statusOf[snapshot.desired],
      reason: null,
      conditions: conditionsOf(snapshot, clock.now(), { status: 'True', reason: 'Observed', message: '' }),
      operation: snapshot.operation === undefined ? undefined : { id: snapshot.operation.id, error: null },
    },
    epoch,
  )
  await failpoint('finish.after')
}

async function remove(snapshot: Snapshot, deps: TenantReconcilerDeps, signal: AbortSignal): Promise<Outcome> {
  const { store, probe, region, failpoint, epoch, clock } = deps
  await failpoint('delete.before')
  await store.recordPublished(snapshot.id, { homeVersion: snapshot.homeVersion ?? null, routePhase: 'deleted' }, epoch)
  await untilEvery(
    region.config.gateway_internal_urls,
    async (url, signal) => {
      const route = await probe.route(url, snapshot.id, signal)
      return route === undefined || route.phase === 'deleted'
    },
    AbortSignal.any([signal, clock.timeout(observeMilliseconds)]),
    clock,
  )
  await failpoint('delete.unrouted')
  const due = snapshot.purgeAfter ?? clock.now()
  if (due > clock.now()) {
    if (isDedicated(snapshot) && snapshot.images !== undefined && snapshot.subnet !== undefined)
      await converge(snapshot, deps, signal)
    const conditions = conditionsOf(
      snapshot,
      clock.now(),
      { status: 'False', reason: 'Deleted', message: `data is kept until ${due.toISOString()}` },
      ['Route'],
    )
    await store.recordObserved(
      snapshot.id,
      {
        generation: snapshot.generation,
        status: 'deleting',
        reason: 'deleted by the operator',
        conditions,
        operation: undefined,
      },
      epoch,
    )
    await failpoint('delete.waiting')
    return { again: due, repaired: false }
  }
  await purge(snapshot, deps, signal)
  return { again: undefined, repaired: false }
}

/** In the reverse order of making: nobody serves it, then nothing is stored, then nothing is known. */
async function purge(snapshot: Snapshot, deps: TenantReconcilerDeps, signal: AbortSignal): Promise<void> {
  const { store, failpoint, epoch } = deps
  await failpoint('purge.before')
  await store.recordPublished(snapshot.id, { homeVersion: null, routePhase: 'deleted' }, epoch)
  if (isDedicated(snapshot)) await purgeServices(snapshot, deps, signal)
  else await purgeShared(snapshot, deps, signal)
  await store.removeTenant(snapshot.id, epoch)
  await failpoint('purge.finished')
}

async function purgeShared(
  snapshot: Snapshot,
  { probe, region, failpoint, clock }: TenantReconcilerDeps,
  signal: AbortSignal,
): Promise<void> {
  const urls = region.runtimeUrls(snapshot)
  await untilEvery(
    urls,
    async (url, signal) => (await probe.tenantHealth(url, snapshot.id, signal)) === undefined,
    AbortSignal.any([signal, clock.timeout(observeMilliseconds)]),
    clock,
  )
  await failpoint('purge.unpublished')
  await Promise.all(urls.map((url) => probe.removeData(url, snapshot.id, signal)))
  await failpoint('purge.data-removed')
  const home = region.home(snapshot)
  await home.endSessions(snapshot.id)
  await failpoint('purge.sessions-ended')
  await home.drop(snapshot.id)
  await failpoint('purge.home-dropped')
}

/** With its containers, network and volumes everything of the tenant's own is gone. */
async function purgeServices(
  snapshot: Snapshot,
  { region, failpoint }: TenantReconcilerDeps,
  signal: AbortSignal,
): Promise<void> {
  await failpoint('purge.unpublished')
  await region.engine?.remove(snapshot.id, signal, () => failpoint('purge.step-after'))
  await failpoint('purge.services-removed')
}

/** What is recorded when a run failed. Until it is called failed, a tenant is said to be what it was last seen to be. */
export async function recordFailure(
  snapshot: Snapshot,
  deps: Pick<TenantReconcilerDeps, 'store' | 'clock' | 'epoch'>,
  error: unknown,
  series: FailureSeries,
): Promise<void> {
  const message = publicMessage(error)
  const isLasting = error instanceof EngineError && (error.code === 'VOLUME_MISSING' || error.code === 'HOME_MISSING')
  const status: Status =
    snapshot.desired === 'deleted'
      ? 'deleting'
      : isLasting || hasFailed(series, deps.clock.now())
        ? 'failed'
        : snapshot.status
  await deps.store.recordObserved(
    snapshot.id,
    {
      // Not observed: the generation stays as it was.
      generation: snapshot.observedGeneration,
      status,
      reason: message,
      conditions: conditionsOf(snapshot, deps.clock.now(), { status: 'False', reason: reasonOf(error), message }),
      operation: snapshot.operation === undefined ? undefined : { id: snapshot.operation.id, error: message },
    },
    deps.epoch,
  )
}

/** What went wrong in words that may be shown: ours, never a driver's, which may hold addresses. */
function publicMessage(error: unknown): string {
  if (error instanceof EngineError || error instanceof HomeError) return error.message
  if (error instanceof Error && /^the (runtime|gateway|database) /.test(error.message)) return error.message
  return 'the home could not be brought to the wanted state; it is tried again'
}

async function step(snapshot: Snapshot, name: string, { store, epoch }: TenantReconcilerDeps): Promise<void> {
  if (snapshot.operation !== undefined && isDedicated(snapshot))
    await store.recordStep(snapshot.operation.id, name, epoch)
}

function secretOf(snapshot: Snapshot, kind: keyof Snapshot['secrets']): string {
  const [newest] = snapshot.secrets[kind]
  if (newest === undefined) throw new Error(`${snapshot.id} has no ${kind}`)
  return newest
}
