// Removes a deleted tenant: ends its route, retains its data for a while, then removes everything of it.
import { EngineError } from '../engines/index.ts'
import { convergeServices } from './converge-services.ts'
import { observeMilliseconds } from './observe-tenant.ts'
import { recordRetained } from './record-outcome.ts'
import type { Outcome, Reconciliation } from './reconciliation.ts'
import type { Snapshot } from './reconcile-store.ts'
import { hasBegun, hasCluster, isDedicated } from './region.ts'
import { untilEvery } from './region-probe.ts'

export async function removeTenant(snapshot: Snapshot, run: Reconciliation, signal: AbortSignal): Promise<Outcome> {
  const { store, probe, region, failpoint, epoch, clock, observations } = run
  await failpoint('delete.before')
  await store.recordPublished(snapshot.id, { homeVersion: snapshot.homeVersion ?? null, routePhase: 'deleted' }, epoch)
  await untilEvery(
    region.gatewayUrls(),
    async (url, signal) => {
      const route = await probe.route(url, snapshot.id, signal)
      return route === undefined || route.phase === 'deleted'
    },
    AbortSignal.any([signal, clock.timeout(observeMilliseconds)]),
    clock,
  )
  await failpoint('delete.unrouted')
  if (!isDedicated(snapshot)) await region.home(snapshot).setSqlLogin(snapshot.id, false)
  const due = snapshot.purgeAfter ?? clock.now()
  if (due > clock.now()) {
    if (hasBegun(snapshot, region)) await convergeServices(snapshot, run, signal)
    const message = `The data is retained until ${due.toISOString()}.`
    observations.note('Route', { status: 'False', reason: 'Deleted', message })
    await recordRetained(snapshot, run)
    await failpoint('delete.waiting')
    return { again: due, repaired: false }
  }
  await failpoint('purge.before')
  // An undelete may have been committed after the snapshot.
  if (!(await store.beginPurge(snapshot.id, snapshot.generation, epoch))) return { again: clock.now(), repaired: false }
  await purge(snapshot, run, signal)
  return { again: undefined, repaired: false }
}

/** Removes everything in the reverse order of its creation: routes, data, and finally its record. */
async function purge(snapshot: Snapshot, run: Reconciliation, signal: AbortSignal): Promise<void> {
  const { store, failpoint, epoch } = run
  await store.recordPublished(snapshot.id, { homeVersion: null, routePhase: 'deleted' }, epoch)
  if (isDedicated(snapshot)) await purgeServices(snapshot, run, signal)
  else await purgeShared(snapshot, run, signal)
  await store.removeTenant(snapshot.id, epoch)
  await failpoint('purge.finished')
}

async function purgeShared(
  snapshot: Snapshot,
  { probe, region, failpoint, clock }: Reconciliation,
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
  await home.drop(snapshot.id, { signal, onPart: () => failpoint('purge.part-dropped') })
  await failpoint('purge.home-dropped')
}

/** Removes the tenant's containers, network and volumes, which hold everything of its own. */
async function purgeServices(snapshot: Snapshot, run: Reconciliation, signal: AbortSignal): Promise<void> {
  const { region, probe, failpoint } = run
  await failpoint('purge.unpublished')
  try {
    await region.engine?.remove(snapshot.id, signal, () => failpoint('purge.step-after'))
  } catch (error) {
    if (!(await isOnLostHosts(error, snapshot, run))) throw error
  }
  // A move may have given it one in addition.
  const usesCluster = hasCluster(snapshot) || snapshot.moving?.isolation === 'cluster-per-tenant'
  if (usesCluster) await region.closeCluster({ id: snapshot.id, isolation: 'cluster-per-tenant' }, signal)
  if (region.spansHosts && usesCluster) {
    // Its files are in the bucket of the runtimes that tenants share.
    const urls = region.runtimeUrls({ id: snapshot.id, isolation: 'schema-per-tenant' })
    await Promise.any(urls.map((url) => probe.removeData(url, snapshot.id, signal)))
  }
  await failpoint('purge.services-removed')
}

/**
 * Whether all that may remain of a tenant is on hosts that are lost. The sweeper of orphans removes it when one returns. A host that the
 * removal has missed may respond again by now.
 */
async function isOnLostHosts(error: unknown, snapshot: Snapshot, { store }: Reconciliation): Promise<boolean> {
  if (!(error instanceof EngineError) || error.missedHosts.length === 0) return false
  const states = await store.placements.states(snapshot.regionId)
  const own = new Set(Object.values(snapshot.placement))
  return error.missedHosts.filter((id) => own.has(id)).every((id) => states.get(id) === 'lost')
}
