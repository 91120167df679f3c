// Pauses tenants with a stack of their own that nobody uses: asks the region's gateways, and only what all of them know counts.
import type { Clock } from '../platform/clock.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Region, RegionProbe } from '../reconcile/index.ts'
import type { RunningTenant, RunningTenants } from '../tenants/index.ts'
import type { PauseStore } from './store.ts'
import { idleTenants, pauseAfter, watched, type WatchedGateway } from './idle-plan.ts'
import { repeat } from '../platform/repeat.ts'
import type { Log } from '../platform/log.ts'

interface IdlePauseDeps {
  store: PauseStore & RunningTenants
  regions: ReadonlyMap<string, Pick<Region, 'config'>>
  probe: Pick<RegionProbe, 'activity'>
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
}

const maxInterval = 5_000
const shortestInterval = 1_000

/** Runs while this control plane leads. */
export function pauseIdleTenants(deps: IdlePauseDeps): (leadership: Leadership) => Promise<void> {
  return async (leadership) => {
    const watches = [...deps.regions.values()]
      .filter(({ config }) => config.engine === 'docker')
      .map((region) => createIdlePause(region, deps, leadership.epoch))
    await Promise.all(watches.map((watch) => watch.keep(leadership.lost)))
  }
}

export function createIdlePause(
  { config }: Pick<Region, 'config'>,
  { store, probe, clock, log }: IdlePauseDeps,
  epoch: bigint,
) {
  const regionSeconds = config.docker?.pause_after_seconds ?? 0
  const gateways = new Map<string, WatchedGateway>()

  /** @returns whether every gateway has answered; one that has not may have been started anew since */
  const requestGateways = async (running: readonly RunningTenant[], signal: AbortSignal): Promise<boolean> => {
    const ids = new Set(running.map(({ id }) => id))
    const requested = config.gateway_internal_urls.map(async (url) => {
      const activity = await probe.activity(url, signal).catch(() => undefined)
      if (activity === undefined) gateways.delete(url)
      else gateways.set(url, watched(gateways.get(url), activity, ids, clock.now()))
      return activity !== undefined
    })
    return (await Promise.all(requested)).every(Boolean)
  }

  /** Once: looks at everybody. @returns after how many milliseconds to look again */
  const poll = async (signal: AbortSignal): Promise<number> => {
    const running = await store.runningTenants(config.id)
    const seconds = running.map((tenant) => pauseAfter(tenant, regionSeconds)).filter((after) => after > 0)
    if (seconds.length === 0) {
      // Whoever comes while nobody asks is not known of.
      gateways.clear()
      return maxInterval
    }
    if (await requestGateways(running, signal)) {
      for (const { id, generation } of idleTenants(running, [...gateways.values()], regionSeconds, clock.now())) {
        if (await store.pause(id, generation, epoch))
          log.info({ region: config.id, tenant: id }, 'nobody uses the tenant; it is paused')
      }
    }
    return Math.min(maxInterval, Math.max(shortestInterval, (Math.min(...seconds) * 1000) / 4))
  }

  return {
    poll,
    keep: (signal: AbortSignal): Promise<void> =>
      repeat(
        {
          clock,
          work: poll,
          onError: (error) =>
            log.warn({ region: config.id, err: error }, 'idle tenants could not be looked for; it is tried again'),
        },
        signal,
      ),
  }
}
