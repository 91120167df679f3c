// Volumes: creates, adopts and removes them by name.
import type Dockerode from 'dockerode'
import {
  type Ownership,
  type VolumeSpec,
  EngineError,
  isOwned,
  isUnlabelled,
  rejectForeign,
  toDocker,
} from '../index.ts'
import { segment, type EngineApi } from './engine-api.ts'
import { statusOf } from './errors.ts'
import type { VolumeMeter } from './volume-meter.ts'

/** Creates a volume. The Engine returns an existing volume of any owner, which its labels show, and cannot label it. */
export async function createVolume(
  api: EngineApi,
  meter: VolumeMeter,
  spec: VolumeSpec,
  signal: AbortSignal,
): Promise<void> {
  const made = await create(api, spec, signal)
  if (isOwned(made.Labels, spec.labels)) return
  if (!isUnlabelled(made)) rejectForeign('volume', spec.name, made.Labels, spec.labels)
  await removeUnlabelledVolume(api, meter, spec.name, signal)
  rejectForeign('volume', spec.name, (await create(api, spec, signal)).Labels, spec.labels)
}

async function create(
  api: EngineApi,
  { name, labels }: VolumeSpec,
  signal: AbortSignal,
): Promise<Dockerode.VolumeInspectInfo> {
  const body = { Name: name, Driver: 'local', Labels: toDocker(labels) }
  const made = await api.request(
    { doing: `create volume ${name}`, method: 'POST', path: '/volumes/create', body },
    signal,
  )
  return made as Dockerode.VolumeInspectInfo
}

/**
 * Removes a volume without labels if no file in it has any content; a Postgres that rejected it leaves an empty lock
 * file. The Engine does not remove a volume that a container uses.
 * @throws EngineError `FOREIGN_OBJECT`
 */
export async function removeUnlabelledVolume(
  api: EngineApi,
  meter: VolumeMeter,
  name: string,
  signal: AbortSignal,
): Promise<void> {
  const foreign = (why: string) =>
    new EngineError('FOREIGN_OBJECT', `A volume named "${name}" exists that does not belong to Tenantry${why}.`)
  const found = await findVolume(api, name, signal)
  if (found === undefined) return
  if (!isUnlabelled(found)) throw foreign('')
  const bytes = (await meter.all(signal)).find((volume) => volume.Name === name)?.UsageData?.Size
  if (bytes !== 0) throw foreign(' and holds data')
  try {
    await remove(api, name, signal)
  } catch (error) {
    if (statusOf(error) === 409) throw foreign(' and is in use')
    throw error
  }
}

export async function removeVolume(api: EngineApi, name: string, owner: Ownership, signal: AbortSignal): Promise<void> {
  const found = await findVolume(api, name, signal)
  if (found === undefined) return
  rejectForeign('volume', name, found.Labels, owner)
  await remove(api, name, signal)
}

async function remove(api: EngineApi, name: string, signal: AbortSignal): Promise<void> {
  try {
    await api.request({ doing: `remove volume ${name}`, method: 'DELETE', path: `/volumes/${segment(name)}` }, signal)
  } catch (error) {
    if (statusOf(error) !== 404) throw error
  }
}

/**
 * Checks that a volume exists. @throws EngineError `VOLUME_MISSING`, also for an unlabelled one of that name;
 * `FOREIGN_OBJECT`
 */
export async function requireVolume(
  api: EngineApi,
  doing: string,
  name: string,
  owner: Ownership,
  signal: AbortSignal,
): Promise<void> {
  const missing = (why: string) => new EngineError('VOLUME_MISSING', `Cannot ${doing}: the volume "${name}" ${why}.`)
  const found = await findVolume(api, name, signal)
  if (found === undefined) throw missing('does not exist')
  if (isUnlabelled(found)) throw missing('is gone, and Docker has created an unlabelled one of that name')
  rejectForeign('volume', name, found.Labels, owner)
}

export async function findVolume(
  api: EngineApi,
  name: string,
  signal: AbortSignal,
): Promise<Dockerode.VolumeInspectInfo | undefined> {
  try {
    const found = await api.request(
      { doing: `find volume ${name}`, method: 'GET', path: `/volumes/${segment(name)}` },
      signal,
    )
    return found as Dockerode.VolumeInspectInfo
  } catch (error) {
    if (statusOf(error) === 404) return undefined
    throw error
  }
}
