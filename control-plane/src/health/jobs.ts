// Reads from the runtimes whether their tenants' homes are whole, region by region at the same time. A damaged home is recorded
// with the tenant, and the reconciler repairs it.
import type { Clock } from '../platform/clock.ts'
import type { Leadership } from '../platform/leader.ts'
import {
  firstResponse,
  describeHealth,
  type ReadyTenant,
  type ReconcileStore,
  type Region,
  type RegionProbe,
} from '../reconcile/index.ts'
import type { Condition } from '../tenants/index.ts'
import { repeatInRegions } from '../platform/repeat-in-regions.ts'
import type { Log } from '../platform/log.ts'

interface HomeWatchDeps {
  store: Pick<ReconcileStore, 'readyTenants' | 'snapshot' | 'recordObserved'>
  regions: ReadonlyMap<string, Pick<Region, 'runtimeUrls'>>
  probe: Pick<RegionProbe, 'tenantHealth'>
  clock: Clock
  log: Pick<Log, 'warn'>
}

/** The pause between two rounds. */
const intervalMs = 60_000
/**
 * The pause after a check, as a multiple of its duration: a check opens a session and reads the catalogs, and those of
 * thousands of homes must leave the servers to the tenants.
 */
const pausePerCheck = 9
/** The maximum duration of a round's pauses. */
const maxPausesMs = 3_600_000
/** The maximum number of simultaneous checks in each region. */
const maxAtOnce = 2
const responseTimeoutMs = 5_000

/** Creates the job, which runs while this control plane leads. */
export function watchHomes(deps: HomeWatchDeps): (leadership: Leadership) => Promise<void> {
  const { clock, log, regions } = deps
  return async ({ epoch, lost }) => {
    const createWork = (id: string, region: Pick<Region, 'runtimeUrls'>) => createHomeWatch(id, region, deps, epoch)
    const failure = 'The homes could not be checked. The check is retried.'
    await repeatInRegions(regions, { clock, log, createWork, failure }, lost)
  }
}

/**
 * Creates the check of all homes of a region.
 * @returns the milliseconds until the next check
 */
function createHomeWatch(
  regionId: string,
  region: Pick<Region, 'runtimeUrls'>,
  { store, probe, clock, log }: Omit<HomeWatchDeps, 'regions'>,
  epoch: bigint,
): (signal: AbortSignal) => Promise<number> {
  const check = async (tenant: ReadyTenant, signal: AbortSignal): Promise<void> => {
    const { id: tenantId } = tenant
    const bounded = AbortSignal.any([signal, clock.timeout(responseTimeoutMs)])
    // A runtime that does not respond reports nothing about the home.
    const health = await firstResponse(region.runtimeUrls(tenant), (url) =>
      probe.tenantHealth(url, tenantId, bounded),
    ).catch(() => undefined)
    if (health?.components.database.message?.startsWith('the home is damaged') !== true) return
    const snapshot = await store.snapshot(tenantId)
    if (snapshot === undefined) return
    const message = `the runtime ${describeHealth(health)}`
    log.warn({ tenant: tenantId, error: message }, 'A home is damaged and will be repaired.')
    const at = clock.now().toISOString()
    const home: Condition = { type: 'Home', status: 'False', reason: 'HomeDamaged', message, observed_at: at }
    const others = snapshot.conditions.filter(({ type }) => type !== 'Home')
    const { generation, status } = snapshot
    await store.recordObserved(
      tenantId,
      { generation, status, reason: message, conditions: [home, ...others], operation: undefined },
      epoch,
    )
  }

  return async (signal) => {
    const tenants = await store.readyTenants(regionId)
    const maxPauseMs = (maxPausesMs * maxAtOnce) / tenants.length
    const remaining = tenants.values()
    const checkRemaining = async () => {
      for (const tenant of remaining) {
        const begun = clock.now().getTime()
        await check(tenant, signal)
        await clock.sleep(Math.min(pausePerCheck * (clock.now().getTime() - begun), maxPauseMs), signal)
      }
    }
    await Promise.all(Array.from({ length: maxAtOnce }, checkRemaining))
    return intervalMs
  }
}
