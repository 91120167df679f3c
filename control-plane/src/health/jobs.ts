// Reads from the runtimes whether their tenants' homes are whole. A damaged home is recorded with the tenant, and the
// reconciler repairs it.
import PQueue from 'p-queue'
import type { Clock } from '../platform/clock.ts'
import type { Leadership } from '../platform/leader.ts'
import {
  firstResponse,
  describeHealth,
  type ReconcileStore,
  type Region,
  type RegionProbe,
} from '../reconcile/index.ts'
import type { Condition } from '../tenants/index.ts'
import { repeat } from '../platform/repeat.ts'
import type { Log } from '../platform/log.ts'

interface HomeWatchDeps {
  store: Pick<ReconcileStore, 'readyTenants' | 'snapshot' | 'recordObserved'>
  regions: ReadonlyMap<string, Pick<Region, 'runtimeUrls'>>
  probe: Pick<RegionProbe, 'tenantHealth'>
  clock: Clock
  log: Pick<Log, 'warn'>
}

const minIntervalMs = 60_000
/**
 * The pause after a round, as a multiple of its duration: a check opens a session and reads the catalogs, and thousands of them
 * must leave the servers to the tenants.
 */
const pausePerRound = 9
const maxIntervalMs = 3_600_000
const maxAtOnce = 2
const responseTimeoutMs = 5_000

/** Creates the job, which runs while this control plane leads. */
export function watchHomes(deps: HomeWatchDeps): (leadership: Leadership) => Promise<void> {
  const { clock, log } = deps
  return ({ epoch, lost }) => {
    const watch = createHomeWatch(deps, epoch)
    return repeat(
      {
        clock,
        work: watch,
        onError: (error) => log.warn({ err: error }, 'The homes could not be checked. The check is retried.'),
      },
      lost,
    )
  }
}

/**
 * Creates the check of all homes.
 * @returns the milliseconds until the next check
 */
function createHomeWatch(
  { store, regions, probe, clock, log }: HomeWatchDeps,
  epoch: bigint,
): (signal: AbortSignal) => Promise<number> {
  const check = async (tenantId: string, signal: AbortSignal): Promise<void> => {
    const snapshot = await store.snapshot(tenantId)
    const region = regions.get(snapshot?.regionId ?? '')
    if (snapshot === undefined || region === undefined) return
    const bounded = AbortSignal.any([signal, clock.timeout(responseTimeoutMs)])
    // A runtime that does not respond reports nothing about the home.
    const health = await firstResponse(region.runtimeUrls(snapshot), (url) =>
      probe.tenantHealth(url, tenantId, bounded),
    ).catch(() => undefined)
    if (health?.components.database.message?.startsWith('the home is damaged') !== true) return
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
    const begun = clock.now().getTime()
    const tenants = await store.readyTenants()
    const queue = new PQueue({ concurrency: maxAtOnce })
    await queue.addAll(tenants.map((id) => async () => (signal.aborted ? undefined : check(id, signal))))
    const pause = pausePerRound * (clock.now().getTime() - begun)
    return Math.min(Math.max(minIntervalMs, pause), maxIntervalMs)
  }
}
