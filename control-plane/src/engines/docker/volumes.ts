// Volumes: made, adopted, measured and removed by name.
import type Dockerode from 'dockerode'
import type { Ownership, VolumeSpec } from '../container-host.ts'
import { segment, type EngineApi } from './engine-api.ts'
import { statusOf } from './errors.ts'
import { isOwned, refuseForeign, toDocker } from './labels.ts'
import { within } from './within.ts'

/** The Engine answers with the volume that exists, whoever's it is: the labels tell. */
export async function createVolume(api: EngineApi, { name, labels }: VolumeSpec, signal: AbortSignal): Promise<void> {
  const body = { Name: name, Driver: 'local', Labels: toDocker(labels) }
  const made = await api.ask({ doing: `create volume ${name}`, method: 'POST', path: '/volumes/create', body }, signal)
  refuseForeign('volume', name, (made as Dockerode.VolumeInspectInfo).Labels, labels)
}

export async function removeVolume(api: EngineApi, name: string, owner: Ownership, signal: AbortSignal): Promise<void> {
  const found = await findVolume(api, name, signal)
  if (found === undefined) return
  refuseForeign('volume', name, found.Labels, owner)
  try {
    await api.ask({ doing: `remove volume ${name}`, method: 'DELETE', path: `/volumes/${segment(name)}` }, signal)
  } catch (error) {
    if (statusOf(error) !== 404) throw error
  }
}

export async function findVolume(api: EngineApi, name: string, signal: AbortSignal): Promise<Dockerode.VolumeInspectInfo | undefined> {
  try {
    const found = await api.ask({ doing: `look for volume ${name}`, method: 'GET', path: `/volumes/${segment(name)}` }, signal)
    return found as Dockerode.VolumeInspectInfo
  } catch (error) {
    if (statusOf(error) === 404) return undefined
    throw error
  }
}

/** The Engine walks every file of its volumes for this. Older ones measure images and containers as well. */
const measuringSeconds = 300

export type VolumeMeter = (owned: Ownership, signal: AbortSignal) => Promise<Record<string, number>>

/**
 * The Engine refuses a second measurement while one runs: who asks meanwhile gets that one's result. It goes on when
 * nobody waits any more, and is ended with the host.
 */
export function volumeMeter(api: EngineApi, closed: AbortSignal): VolumeMeter {
  const call = { doing: 'measure volumes', method: 'GET', path: '/system/df', query: { type: 'volume' }, seconds: measuringSeconds } as const
  let running: Promise<unknown> | undefined
  const measure = () => {
    running ??= api.ask(call, closed).finally(() => (running = undefined))
    return running
  }
  return async (owned, signal) => {
    const { Volumes } = (await within(measuringSeconds * 1000, signal, measure)) as { Volumes: Dockerode.VolumeInspectInfo[] | null }
    const ours = (Volumes ?? []).filter(({ Labels }) => isOwned(Labels, owned))
    return Object.fromEntries(ours.map(({ Name, UsageData }) => [Name, Math.max(0, UsageData?.Size ?? 0)]))
  }
}
