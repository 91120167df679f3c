// A tenant that is wanted running: its services, its home, its route, and a look at all of them.
import { convergeServices } from './converge-services.ts'
import { ensureHome } from './ensure-home.ts'
import { observeMilliseconds, observeRoute, observeRuntimes } from './observe-tenant.ts'
import { recordReached } from './record-outcome.ts'
import type { Reconciliation } from './reconciliation.ts'
import type { Snapshot } from './reconcile-store.ts'
import { isDedicated } from './region.ts'

/** A runtime that was just made may take longer than others. */
const firstResponseMilliseconds = 30_000
/** One whose home is well answers sooner. */
const observedMilliseconds = 3_000

export async function serveTenant(snapshot: Snapshot, run: Reconciliation, signal: AbortSignal): Promise<void> {
  const { store, failpoint, epoch, homeVersion } = run
  await convergeServices(snapshot, run, signal)
  const wasSeen = await isSeenWell(snapshot, run, signal)
  if (!wasSeen) {
    await ensureHome(snapshot, run, signal)
    await publishHome(snapshot, run)
  }
  await failpoint('observe.before')
  if (isUnrouted(snapshot)) {
    if (!wasSeen) await observeRuntimes(snapshot, run, signal, firstResponseMilliseconds)
    await failpoint('observe.runtime')
    if (snapshot.desired === 'active') {
      await store.recordPublished(snapshot.id, { homeVersion, routePhase: 'ready' }, epoch)
      await observeRoute(snapshot, 'ready', run, signal)
    }
  } else {
    const runtimes = wasSeen ? undefined : observeRuntimes(snapshot, run, signal, observeMilliseconds)
    // Each is seen to its end, whatever comes of the other.
    const ends = await Promise.allSettled([runtimes, observeRoute(snapshot, 'ready', run, signal)])
    for (const end of ends) if (end.status === 'rejected') throw end.reason
  }
  await failpoint('observe.after')
  await recordReached(snapshot, run)
}

/** A runtime of the tenant's own may still be starting: it is seen well before anybody is sent to it. */
function isUnrouted(snapshot: Snapshot): boolean {
  return isDedicated(snapshot) && snapshot.routePhase !== 'ready'
}

/** Records home and route as published, which runtimes and gateways then receive by their watches (watch/). */
async function publishHome(
  snapshot: Snapshot,
  { store, failpoint, homeVersion, epoch }: Reconciliation,
): Promise<void> {
  const routePhase = isUnrouted(snapshot) ? snapshot.routePhase : 'ready'
  await store.recordPublished(snapshot.id, { homeVersion, routePhase }, epoch)
  await failpoint('home.recorded')
}

/**
 * Whether the runtime, which logs in to a home that was made before, finds it well. To ask inside the containers takes
 * processes there, just when the services start: that is left for when the runtime finds something wrong.
 */
async function isSeenWell(snapshot: Snapshot, run: Reconciliation, signal: AbortSignal): Promise<boolean> {
  if (!isDedicated(snapshot) || snapshot.homeVersion !== run.homeVersion) return false
  await publishHome(snapshot, run)
  try {
    await observeRuntimes(snapshot, run, signal, observedMilliseconds)
    return true
  } catch {
    signal.throwIfAborted()
    return false
  }
}
