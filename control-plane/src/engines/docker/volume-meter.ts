// Measures the volumes of an Engine, one measurement at a time.
import type Dockerode from 'dockerode'
import { setTimeout as delay } from 'node:timers/promises'
import { isOwned, type Ownership } from '../index.ts'
import type { EngineApi } from './engine-api.ts'
import { rejectionText } from './errors.ts'
import { withTimeout } from './with-timeout.ts'

/**
 * Time limit of a measurement: the Engine walks every file of its volumes. Older ones also measure images and
 * containers.
 */
const measuringSeconds = 300

const pauseMilliseconds = 250

const call = {
  doing: 'measure volumes',
  method: 'GET',
  path: '/system/df',
  query: { type: 'volume' },
  seconds: measuringSeconds,
} as const

/** Measures the volumes of an Engine. */
export type VolumeMeter = ReturnType<typeof volumeMeter>

/**
 * Measures volumes. The Engine rejects a second measurement while one runs, so concurrent callers share one, and those
 * of other clients are waited for. A measurement continues after all callers have left, and ends with the host.
 */
export function volumeMeter(api: EngineApi, closed: AbortSignal) {
  let running: Promise<unknown> | undefined
  const measure = () => {
    running ??= measureAlone(api, closed).finally(() => (running = undefined))
    return running
  }
  const all = async (signal: AbortSignal): Promise<Dockerode.VolumeInspectInfo[]> => {
    const { Volumes } = (await withTimeout(measuringSeconds * 1000, signal, measure)) as {
      Volumes: Dockerode.VolumeInspectInfo[] | null
    }
    return Volumes ?? []
  }
  return {
    /** Returns all volumes of the Engine with their sizes, of any owner. */
    all,
    /** Bytes on disk of the owner's volumes, by name. */
    async bytes(owned: Ownership, signal: AbortSignal): Promise<Record<string, number>> {
      const ours = (await all(signal)).filter(({ Labels }) => isOwned(Labels, owned))
      return Object.fromEntries(ours.map(({ Name, UsageData }) => [Name, Math.max(0, UsageData?.Size ?? 0)]))
    },
  }
}

/** Measures after the measurements of other clients, for example `docker system df`. */
async function measureAlone(api: EngineApi, signal: AbortSignal): Promise<unknown> {
  const end = Date.now() + measuringSeconds * 1000
  for (;;) {
    try {
      return await api.request(call, signal)
    } catch (error) {
      const busy = /disk usage operation is already running/i.test(rejectionText(error))
      if (!busy || Date.now() > end) throw error
    }
    await delay(pauseMilliseconds, undefined, { signal })
  }
}
