// Reconciles one tenant. It computes the work from a fresh snapshot each time, so that the next run repairs any interruption.
import type { RoutePhase } from '@tenantry/contract'
import { hasFormer, planSteps } from '../engines/index.ts'
import { LeadershipLost } from '../platform/leadership-lost.ts'
import { allocateServices } from './converge-services.ts'
import { haltTenant } from './halt-tenant.ts'
import { isRunning } from './leaving-services.ts'
import { isClusterComplete } from './observe-cluster.ts'
import type { Outcome, Reconciliation } from './reconciliation.ts'
import type { Snapshot } from './reconcile-store.ts'
import { reachedStatus } from './record-outcome.ts'
import { hasCluster, isDedicated } from './region.ts'
import { removeTenant } from './remove-tenant.ts'
import { repairDrift } from './repair-drift.ts'
import { isRecorded, observeOnly, type StatusSource } from './report-observed.ts'
import { serveTenant } from './serve-tenant.ts'
import { shouldMove } from './should-move.ts'
import { isSpreadOutdated, spreadOf } from './spread.ts'
import type { Condition } from '../tenants/index.ts'

const runMilliseconds = 90_000
/** Delay until the next poll of a tenant whose requests a move holds. */
const heldMilliseconds = 1_000
/** Delay between two polls of an unhealthy tenant whose policy leaves it so: an operator may repair it at any time. */
const recoveryMilliseconds = 5_000

/**
 * An error of the observation of a settled tenant. It reveals nothing of the tenant and is not recorded in its
 * conditions.
 */
export class ObservationFailed extends Error {}

/** Reconciles a tenant. @throws Error with a cause if a step failed; the caller records it and retries later */
export async function reconcileTenant(snapshot: Snapshot, run: Reconciliation, signal: AbortSignal): Promise<Outcome> {
  const { store, failpoint, epoch, clock } = run
  // A restore fills the volumes and starts the tenant.
  if (snapshot.desired === 'restoring') return { again: undefined, repaired: false }
  // The move publishes the tenant itself, and requests a reconciliation at its end.
  if (snapshot.isHeld && snapshot.desired !== 'deleted')
    return { again: new Date(clock.now().getTime() + heldMilliseconds), repaired: false }
  const busy = AbortSignal.any([signal, clock.timeout(runMilliseconds)])
  if (isUnchanged(snapshot, run) && !(await mustMove(snapshot, run))) {
    if (snapshot.driftPolicy !== 'repair') return report(snapshot, run, busy)
    if (wasReached(snapshot) && !(await hasDrifted(snapshot, run, busy)))
      return { again: snapshot.nextExpiry, repaired: false }
  }
  if (snapshot.operation !== undefined) {
    await failpoint('begin.before')
    await store.beginOperation(snapshot.operation.id, epoch)
    await failpoint('begin.after')
  }
  if (snapshot.desired === 'deleted') return removeTenant(snapshot, run, busy)
  const targets = snapshot.operation?.repair?.targets
  if (targets !== null && targets !== undefined) {
    await repairDrift(snapshot, targets, run, busy)
    // What the repair has left is repaired, reported or ignored by the tenant's policy.
    return { again: clock.now(), repaired: false }
  }
  const allocated = await allocateServices(snapshot, run, busy)
  if (!isRunning(snapshot)) await haltTenant(allocated, run, busy)
  else if (!(await serveTenant(allocated, run, busy))) return { again: clock.now(), repaired: false }
  return {
    again: snapshot.nextExpiry,
    repaired: snapshot.operation === undefined && snapshot.generation === snapshot.observedGeneration,
  }
}

/** Phase of the route, for tenants that gateways know. */
const phaseOf: Partial<Record<Snapshot['desired'], RoutePhase>> = {
  active: 'ready',
  suspended: 'suspended',
  paused: 'paused',
}

/**
 * Whether nothing has changed since the tenant was last observed as specified. Only an observation shows whether it
 * still is.
 */
function isUnchanged(snapshot: Snapshot, { homeVersion }: Reconciliation): boolean {
  const { desired, operation, generation, observedGeneration, hasExpired } = snapshot
  if (desired === 'deleted' || operation !== undefined || generation !== observedGeneration || hasExpired) return false
  // An aborted write may have been committed after those that followed it.
  if (snapshot.routePhase !== (phaseOf[desired] ?? snapshot.routePhase)) return false
  // The home of a stopped tenant is updated when it runs again.
  const isCurrent = snapshot.homeVersion === homeVersion || desired === 'suspended' || desired === 'paused'
  return isCurrent && isDedicated(snapshot)
}

/** Whether services of a cluster should get another host. */
async function mustMove(snapshot: Snapshot, { store, region }: Reconciliation): Promise<boolean> {
  if (!region.spansHosts || !hasCluster(snapshot)) return false
  return shouldMove(snapshot, await store.placements.states(snapshot.regionId), region.engine)
}

/** Conditions whose failures the reconciler cannot end: a full disk, a failed proof of a backup, a spending limit. */
const workOfOthers: readonly Condition['type'][] = ['Disk', 'Backup', 'Spending']

/** Whether the last run succeeded. It is false for failed work that was not retried before this control plane led. */
function wasReached({ desired, status, reason, conditions }: Snapshot): boolean {
  if (desired === 'deleted' || status !== reachedStatus[desired] || reason !== null) return false
  return !conditions.some(({ type, status }) => status === 'False' && !workOfOthers.includes(type))
}

async function hasDrifted(snapshot: Snapshot, run: Reconciliation, signal: AbortSignal): Promise<boolean> {
  // Nothing of a host that does not respond is observed, so nothing there differs.
  if (isSpreadOutdated(snapshot, run.region)) return true
  const statusSource = await observe(snapshot, run, signal)
  if (statusSource === undefined) return false
  const steps = await run.observations.observeFailure('Services', async () =>
    planSteps(statusSource.stack, statusSource.host),
  )
  const isUntidy = steps.length > 0 || hasFormer(statusSource.stack, statusSource.host)
  return isUntidy || !(await isClusterComplete(snapshot, run.region, run.clock, signal))
}

/** Records the observations, whatever the policy leaves unchanged. */
async function report(snapshot: Snapshot, run: Reconciliation, signal: AbortSignal): Promise<Outcome> {
  const { region, store, epoch, clock, probe } = run
  const statusSource = await observe(snapshot, run, signal)
  if (statusSource === undefined || snapshot.desired === 'deleted')
    return { again: snapshot.nextExpiry, repaired: false }
  const how = {
    probe,
    clock,
    runtimeUrls: region.runtimeUrls(snapshot),
    reachedStatus: reachedStatus[snapshot.desired],
    spread: region.spansHosts ? spreadOf(snapshot, region) : undefined,
  }
  const observed = await run.observations.observeFailure('Services', () =>
    observeOnly(snapshot, statusSource, how, signal),
  )
  const { isHealthy, ...seen } = observed
  if (!isRecorded(snapshot, observed)) {
    await store
      .recordObserved(snapshot.id, { generation: snapshot.generation, ...seen, operation: undefined }, epoch)
      .catch(observationFailed)
  }
  const nextPoll = new Date(clock.now().getTime() + recoveryMilliseconds)
  const { nextExpiry } = snapshot
  return {
    again: isHealthy || (nextExpiry !== undefined && nextExpiry < nextPoll) ? nextExpiry : nextPoll,
    repaired: false,
  }
}

/** Observes a tenant; undefined if the region has no engine. @throws ObservationFailed */
async function observe(
  snapshot: Snapshot,
  { region }: Reconciliation,
  signal: AbortSignal,
): Promise<StatusSource | undefined> {
  if (region.engine === undefined) return undefined
  const [stack, host] = await Promise.all([
    region.stack(snapshot, signal),
    region.engine.observe(snapshot.id, signal),
  ]).catch(observationFailed)
  return { stack, host }
}

function observationFailed(cause: unknown): never {
  if (cause instanceof LeadershipLost) throw cause
  throw new ObservationFailed("The tenant's services could not be observed.", { cause })
}
