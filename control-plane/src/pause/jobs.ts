// Pauses tenants with their own services that are not used. Only reports of all of the region's gateways together
// count.
import type { Clock } from '../platform/clock.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Region, RegionProbe } from '../reconcile/index.ts'
import type { RunningTenant, RunningTenants } from '../tenants/index.ts'
import type { PauseStore } from './store.ts'
import { idleTenants, pauseAfter, updateGateway, type WatchedGateway } from './idle-plan.ts'
import { repeat } from '../platform/repeat.ts'
import type { Log } from '../platform/log.ts'

interface IdlePauseDeps {
  store: PauseStore & RunningTenants
  regions: ReadonlyMap<string, Pick<Region, 'config'>>
  probe: Pick<RegionProbe, 'activity'>
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
}

const maxIntervalMilliseconds = 5_000
const minIntervalMilliseconds = 1_000

/** Creates the job, which runs while this control plane leads. */
export function pauseIdleTenants(deps: IdlePauseDeps): (leadership: Leadership) => Promise<void> {
  return async (leadership) => {
    const watches = [...deps.regions.values()]
      .filter(({ config }) => config.engine === 'docker' || config.processes !== undefined)
      .map((region) => createIdlePause(region, deps, leadership.epoch))
    await Promise.all(watches.map((watch) => watch.run(leadership.lost)))
  }
}

export function createIdlePause(
  { config }: Pick<Region, 'config'>,
  { store, probe, clock, log }: IdlePauseDeps,
  epoch: bigint,
) {
  const regionSeconds = (config.docker ?? config.processes)?.pause_after_seconds ?? 0
  const gateways = new Map<string, WatchedGateway>()

  /**
   * Reads all gateways.
   * @returns whether every gateway has responded; one that has not may have restarted since
   */
  const readGateways = async (running: readonly RunningTenant[], signal: AbortSignal): Promise<boolean> => {
    const ids = new Set(running.map(({ id }) => id))
    const reads = config.gateway_internal_urls.map(async (url) => {
      const activity = await probe.activity(url, signal).catch(() => undefined)
      if (activity === undefined) gateways.delete(url)
      else gateways.set(url, updateGateway(gateways.get(url), activity, ids, clock.now()))
      return activity !== undefined
    })
    return (await Promise.all(reads)).every(Boolean)
  }

  /**
   * Polls once: checks all tenants.
   * @returns the milliseconds until the next poll
   */
  const poll = async (signal: AbortSignal): Promise<number> => {
    const running = await store.runningTenants(config.id)
    const seconds = running.map((tenant) => pauseAfter(tenant, regionSeconds)).filter((after) => after > 0)
    if (seconds.length === 0) {
      // Requests are not recorded while the gateways are not read.
      gateways.clear()
      return maxIntervalMilliseconds
    }
    if (await readGateways(running, signal)) {
      for (const { id, generation } of idleTenants(running, [...gateways.values()], regionSeconds, clock.now())) {
        if (await store.pause(id, generation, epoch))
          log.info({ region: config.id, tenant: id }, 'An idle tenant was paused.')
      }
    }
    return Math.min(maxIntervalMilliseconds, Math.max(minIntervalMilliseconds, (Math.min(...seconds) * 1000) / 4))
  }

  return {
    poll,
    run: (signal: AbortSignal): Promise<void> =>
      repeat(
        {
          clock,
          work: poll,
          onError: (error) =>
            log.warn({ region: config.id, err: error }, 'The search for idle tenants failed and is retried.'),
        },
        signal,
      ),
  }
}
