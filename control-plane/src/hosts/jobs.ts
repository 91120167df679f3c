// The leader measures the hosts of each region, and stores what has changed for all control planes.
import type { Clock } from '../platform/clock.ts'
import type { Leadership } from '../platform/leader.ts'
import { LeadershipLost } from '../platform/leadership-lost.ts'
import type { Log } from '../platform/log.ts'
import { repeat } from '../platform/repeat.ts'
import { EngineError } from '../engines/index.ts'
import type { PlacementStore } from '../placement/index.ts'
import type { Failpoint, Region } from '../reconcile/index.ts'
import type { RegionConfig } from '../regions/index.ts'
import { measureHost } from './measure-host.ts'
import type { HostStore } from './store.ts'

interface MeasureHostsDeps {
  store: Pick<HostStore, 'record' | 'evict'>
  regions: ReadonlyMap<string, Region>
  clock: Clock
  placements: Pick<PlacementStore, 'noteLost'>
  failpoint: Failpoint
  log: Pick<Log, 'warn'>
}

const intervalMilliseconds = 15_000
/** The rest between measurements, relative to their duration, because the engine inspects every container. */
const restFactor = 10
const measureMilliseconds = 20_000

/** Creates the job, which runs while this control plane leads. */
export function measureHosts({
  store,
  regions,
  clock,
  placements,
  failpoint,
  log,
}: MeasureHostsDeps): (leadership: Leadership) => Promise<void> {
  const measure = async (region: Region, hostId: string, epoch: bigint, lost: AbortSignal): Promise<number> => {
    const begin = clock.now().getTime()
    const signal = AbortSignal.any([lost, clock.timeout(measureMilliseconds)])
    const outcome = await measureHost(region, hostId, clock, signal).catch((error: unknown) => {
      lost.throwIfAborted()
      if (error instanceof LeadershipLost) throw error
      return error instanceof EngineError ? error.message : 'The host could not be measured.'
    })
    await store.record(region.config.id, hostId, outcome, epoch)
    // A host that responds with an error is there.
    if (hostId !== '') await noteState(region, hostId, region.engine?.isDown(hostId) === true, epoch)
    // A host that did not respond has had no work, and its return should be noticed.
    if (typeof outcome === 'string') return intervalMilliseconds
    return Math.max(intervalMilliseconds, restFactor * (clock.now().getTime() - begin))
  }
  /** The times since which hosts have not responded, by region and host. */
  const silentSince = new Map<string, number>()
  const noteState = async ({ config, engine }: Region, hostId: string, isSilent: boolean, epoch: bigint) => {
    const key = `${config.id}.${hostId}`
    const now = clock.now().getTime()
    if (!isSilent) {
      silentSince.delete(key)
      return placements.noteLost(config.id, hostId, false, epoch)
    }
    const since = silentSince.get(key) ?? now
    silentSince.set(key, since)
    const ids = engine?.hostIds ?? []
    // A leader that reaches only a minority of the hosts may itself be the one that is cut off.
    const isMajority = ids.filter((id) => engine?.isDown(id) !== true).length * 2 > ids.length
    if (!isMajority || now - since < lostAfterSeconds(config) * 1_000) return
    await failpoint('lost.before')
    await placements.noteLost(config.id, hostId, true, epoch)
    await failpoint('lost.recorded')
  }
  return async ({ epoch, lost }) => {
    silentSince.clear()
    await Promise.all(
      [...regions.values()].flatMap((region) =>
        hostIdsOf(region).map((hostId) =>
          repeat(
            {
              clock,
              work: (signal) => measure(region, hostId, epoch, signal),
              onError: (error) =>
                log.warn({ region: region.config.id, host: hostId, err: error }, 'A host could not be measured.'),
            },
            lost,
          ),
        ),
      ),
    )
    store.evict()
  }
}

const defaultLostSeconds = 600

function lostAfterSeconds({ docker }: RegionConfig): number {
  return (docker !== undefined && 'hosts' in docker ? docker.lost_after_seconds : undefined) ?? defaultLostSeconds
}

/** Returns the IDs of a region's hosts; an empty one for the only host. */
function hostIdsOf({ engine }: Region): readonly string[] {
  return engine === undefined || engine.hostIds.length === 0 ? [''] : engine.hostIds
}
