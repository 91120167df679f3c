// Serves a tenant that should run: its services, its home, its route, and an observation of all of them.
import { convergeServices, requireMemory } from './converge-services.ts'
import { ensureHome, ensurePassword, ensureServicePasswords } from './ensure-home.ts'
import { observeCluster } from './observe-cluster.ts'
import { observeMilliseconds, observeRoute, observeRuntimes } from './observe-tenant.ts'
import { recordReached } from './record-outcome.ts'
import type { Reconciliation } from './reconciliation.ts'
import type { Snapshot } from './reconcile-store.ts'
import { isDedicated } from './region.ts'
import { carryOutSwitchover } from './switch-over.ts'

/** Time limit for a runtime that was just created, which needs longer than others. */
const firstResponseMilliseconds = 30_000
/** Time limit for a runtime whose home is healthy, which responds sooner. */
const observedMilliseconds = 3_000

/** Serves a tenant. @returns whether it is as specified; false if the next run should continue */
export async function serveTenant(snapshot: Snapshot, run: Reconciliation, signal: AbortSignal): Promise<boolean> {
  const { store, failpoint, epoch, homeVersion, region } = run
  if (!(await convergeServices(snapshot, run, signal))) return false
  const switchoverError = await carryOutSwitchover(snapshot, run, signal)
  const wasHealthy = await isRuntimeHealthy(snapshot, run, signal)
  if (!wasHealthy) {
    await ensureHome(snapshot, run, signal)
    await publishHome(snapshot, run)
  }
  await ensurePassword(snapshot, run)
  await failpoint('observe.before')
  if (isUnrouted(snapshot)) {
    if (!wasHealthy) await observeRuntimes(snapshot, run, signal, firstResponseMilliseconds)
    await failpoint('observe.runtime')
    if (snapshot.desired === 'active') {
      await store.recordPublished(snapshot.id, { homeVersion, routePhase: 'ready' }, epoch)
      await observeRoute(snapshot, 'ready', run, signal)
    }
  } else {
    const runtimes = wasHealthy ? undefined : observeRuntimes(snapshot, run, signal, observeMilliseconds)
    // Both waits end before a failure is thrown, so that both are observed.
    const ends = await Promise.allSettled([runtimes, observeRoute(snapshot, 'ready', run, signal)])
    for (const end of ends) if (end.status === 'rejected') throw end.reason
  }
  const wasClosed = snapshot.routePhase === 'suspended' || snapshot.routePhase === 'deleted'
  if (wasClosed && !isDedicated(snapshot) && !snapshot.isSqlClosed)
    await region.home(snapshot).setSqlLogin(snapshot.id, true)
  // The runtimes have reported this generation, so they know the passwords that it stores.
  await ensureServicePasswords(snapshot, run)
  await observeCluster(snapshot, run, signal)
  requireMemory(snapshot, run)
  await failpoint('observe.after')
  await recordReached(snapshot, run, switchoverError)
  return true
}

/**
 * Whether the tenant has no route yet. Its own runtime may still be starting, and must be healthy before it receives
 * requests. A tenant that was created in advance receives none.
 */
function isUnrouted(snapshot: Snapshot): boolean {
  return (isDedicated(snapshot) || snapshot.desired === 'warm') && snapshot.routePhase !== 'ready'
}

/** Records home and route as published, which runtimes and gateways then receive through their watches (watch/). */
async function publishHome(
  snapshot: Snapshot,
  { store, failpoint, homeVersion, epoch }: Reconciliation,
): Promise<void> {
  const routePhase = isUnrouted(snapshot) ? snapshot.routePhase : 'ready'
  await store.recordPublished(snapshot.id, { homeVersion, routePhase }, epoch)
  await failpoint('home.recorded')
}

/**
 * Whether the runtime, which logs in to an existing home, reports it as healthy. A check inside the containers costs
 * processes there just when the services start, so it only runs if the runtime reports a failure. A new tenant whose home
 * exists was created in advance, and its client waits.
 */
async function isRuntimeHealthy(snapshot: Snapshot, run: Reconciliation, signal: AbortSignal): Promise<boolean> {
  const isTrusted = isDedicated(snapshot) || (snapshot.desired === 'active' && snapshot.status === 'pending')
  if (!isTrusted || snapshot.homeVersion !== run.homeVersion) return false
  // The claim of a shared home that was created in advance has published it.
  if (isDedicated(snapshot) || snapshot.routePhase !== 'ready') await publishHome(snapshot, run)
  try {
    await observeRuntimes(snapshot, run, signal, observedMilliseconds)
    return true
  } catch {
    signal.throwIfAborted()
    return false
  }
}
