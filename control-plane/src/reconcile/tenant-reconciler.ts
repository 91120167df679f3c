// One tenant, from what is to what should be. Computed anew from a fresh snapshot each time, so that any interruption
// is repaired by the next run.
import type { RoutePhase } from '@tenantry/contract'
import { planSteps } from '../engines/index.ts'
import { LeadershipLost } from '../platform/leadership-lost.ts'
import { placeServices } from './converge-services.ts'
import { haltTenant } from './halt-tenant.ts'
import type { Outcome, Reconciliation } from './reconciliation.ts'
import type { Snapshot } from './reconcile-store.ts'
import { reachedStatus } from './record-outcome.ts'
import { isDedicated } from './region.ts'
import { removeTenant } from './remove-tenant.ts'
import { isKnown, observeOnly, type StatusSource } from './report-observed.ts'
import { serveTenant } from './serve-tenant.ts'

const runMilliseconds = 90_000
/** Between two looks at a tenant that is not well and is left so: somebody may put it right by hand at any time. */
const recoveryMilliseconds = 5_000

/** A settled tenant could not be looked at. That says nothing of the tenant, and is not recorded as if it did. */
export class PollFailed extends Error {}

/** @throws Error with a cause when a step failed; the caller records it and tries again later */
export async function reconcileTenant(snapshot: Snapshot, run: Reconciliation, signal: AbortSignal): Promise<Outcome> {
  const { store, failpoint, epoch, clock } = run
  // Its volumes are being filled; it is begun by who fills them.
  if (snapshot.desired === 'restoring') return { again: undefined, repaired: false }
  const busy = AbortSignal.any([signal, clock.timeout(runMilliseconds)])
  if (isUnchanged(snapshot, run)) {
    if (snapshot.driftPolicy !== 'repair') return report(snapshot, run, busy)
    if (wasSeenAsWanted(snapshot) && !(await hasDrifted(snapshot, run, busy)))
      return { again: snapshot.nextExpiry, repaired: false }
  }
  if (snapshot.operation !== undefined) {
    await failpoint('begin.before')
    await store.beginOperation(snapshot.operation.id, epoch)
    await failpoint('begin.after')
  }
  if (snapshot.desired === 'deleted') return removeTenant(snapshot, run, busy)
  const placed = await placeServices(snapshot, run, busy)
  if (snapshot.desired === 'suspended' || snapshot.desired === 'paused') await haltTenant(placed, run, busy)
  else await serveTenant(placed, run, busy)
  return {
    again: snapshot.nextExpiry,
    repaired: snapshot.operation === undefined && snapshot.generation === snapshot.observedGeneration,
  }
}

/** Of tenants that gateways know. */
const phaseOf: Partial<Record<Snapshot['desired'], RoutePhase>> = {
  active: 'ready',
  suspended: 'suspended',
  paused: 'paused',
}

/** Nothing was asked for since it was last as wanted; whether it still is shows when it is looked at. */
function isUnchanged(snapshot: Snapshot, { homeVersion }: Reconciliation): boolean {
  const { desired, operation, generation, observedGeneration, hasExpired } = snapshot
  if (desired === 'deleted' || operation !== undefined || generation !== observedGeneration || hasExpired) return false
  // A write that was given up may have come after those that followed it.
  if (snapshot.routePhase !== (phaseOf[desired] ?? snapshot.routePhase)) return false
  // The home of one that is stopped is brought up to date when it runs again.
  const isCurrent = snapshot.homeVersion === homeVersion || desired === 'suspended' || desired === 'paused'
  return isCurrent && isDedicated(snapshot)
}

/** False: work that failed, and was not tried again before this control plane led. A full disk is nobody's work here. */
function wasSeenAsWanted({ desired, status, reason, conditions }: Snapshot): boolean {
  if (desired === 'deleted' || status !== reachedStatus[desired] || reason !== null) return false
  return !conditions.some(({ type, status }) => status === 'False' && type !== 'Disk')
}

async function hasDrifted(snapshot: Snapshot, run: Reconciliation, signal: AbortSignal): Promise<boolean> {
  const statusSource = await poll(snapshot, run, signal)
  if (statusSource === undefined) return false
  const steps = await run.observations.failureOf('Services', async () =>
    planSteps(statusSource.stack, statusSource.host),
  )
  return steps.length > 0
}

/** Whatever the policy leaves undone, what was seen is recorded. */
async function report(snapshot: Snapshot, run: Reconciliation, signal: AbortSignal): Promise<Outcome> {
  const { region, store, epoch, clock, probe } = run
  const statusSource = await poll(snapshot, run, signal)
  if (statusSource === undefined || snapshot.desired === 'deleted')
    return { again: snapshot.nextExpiry, repaired: false }
  const how = { probe, clock, runtimeUrls: region.runtimeUrls(snapshot), wellStatus: reachedStatus[snapshot.desired] }
  const observed = await run.observations.failureOf('Services', () => observeOnly(snapshot, statusSource, how, signal))
  const { isWell, ...seen } = observed
  if (!isKnown(snapshot, observed)) {
    await store
      .recordObserved(snapshot.id, { generation: snapshot.generation, ...seen, operation: undefined }, epoch)
      .catch(pollFailed)
  }
  const abortable = new Date(clock.now().getTime() + recoveryMilliseconds)
  const { nextExpiry } = snapshot
  return {
    again: isWell || (nextExpiry !== undefined && nextExpiry < abortable) ? nextExpiry : abortable,
    repaired: false,
  }
}

/** Undefined where the region has no engine. @throws LookFailed */
async function poll(
  snapshot: Snapshot,
  { region }: Reconciliation,
  signal: AbortSignal,
): Promise<StatusSource | undefined> {
  if (region.engine === undefined) return undefined
  const [stack, host] = await Promise.all([
    region.stack(snapshot, signal),
    region.engine.observe(snapshot.id, signal),
  ]).catch(pollFailed)
  return { stack, host }
}

function pollFailed(cause: unknown): never {
  if (cause instanceof LeadershipLost) throw cause
  throw new PollFailed('what exists of the tenant could not be looked at', { cause })
}
