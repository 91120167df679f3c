// Volumes: made, adopted, measured and removed by name.
import type Dockerode from 'dockerode'
import type { Ownership, VolumeSpec } from '../container-host.ts'
import { segment, type EngineApi } from './engine-api.ts'
import { statusOf } from './errors.ts'
import { isOwned, refuseForeign, toDocker } from './labels.ts'

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

export async function volumeBytes(api: EngineApi, owned: Ownership, signal: AbortSignal): Promise<Record<string, number>> {
  const call = { doing: 'measure volumes', method: 'GET', path: '/system/df', query: { type: 'volume' }, seconds: measuringSeconds } as const
  const { Volumes } = (await api.ask(call, signal)) as { Volumes: Dockerode.VolumeInspectInfo[] | null }
  return Object.fromEntries(
    (Volumes ?? []).filter(({ Labels }) => isOwned(Labels, owned)).map(({ Name, UsageData }) => [Name, Math.max(0, UsageData?.Size ?? 0)]),
  )
}
