// Containers: made or adopted, started, stopped, resized and removed by name.
import type Dockerode from 'dockerode'
import { setTimeout as delay } from 'node:timers/promises'
import type { Resources } from '../../stacks/index.ts'
import { type ContainerSpec, type Ownership, changeable, containerBody, rejectForeign } from '../index.ts'
import { segment, type EngineApi } from './engine-api.ts'
import { statusOf, wordsOf } from './errors.ts'
import { connect } from './networks.ts'
import { abortable } from './abortable.ts'
import { requireVolume } from './volumes.ts'

/** Until a container that is being removed is gone, or stopped. */
const slowSeconds = 60

export async function createContainer(api: EngineApi, spec: ContainerSpec, signal: AbortSignal): Promise<void> {
  await requireVolumes(api, spec, signal)
  const call = {
    doing: `create container ${spec.name}`,
    method: 'POST',
    path: '/containers/create',
    seconds: slowSeconds,
  } as const
  try {
    await api.request({ ...call, query: { name: spec.name }, body: containerBody(spec) }, signal)
  } catch (error) {
    if (statusOf(error) !== 409) throw error
    const found = await abortable(() => findContainer(api, spec.name, signal), signal)
    if (found === undefined) throw error
    rejectForeign('container', spec.name, found.Config.Labels, spec.labels)
  }
  await keepOnOwnVolumes(api, spec, signal)
  for (const { network, aliases, address } of spec.networks)
    await connect(api, network, spec.name, aliases, address, signal)
}

/** The Engine would make a missing volume, empty and without a label. */
async function requireVolumes(api: EngineApi, spec: ContainerSpec, signal: AbortSignal): Promise<void> {
  for (const { volume } of spec.volumes)
    await requireVolume(api, `create container ${spec.name}`, volume, spec.labels, signal)
}

/**
 * A volume may have gone between the look and the creation, and the Engine has made another. From now on the container keeps
 * its volumes from being removed, so a second look is final.
 */
async function keepOnOwnVolumes(api: EngineApi, spec: ContainerSpec, signal: AbortSignal): Promise<void> {
  try {
    await requireVolumes(api, spec, signal)
  } catch (error) {
    await removeContainer(api, spec.name, spec.labels, signal)
    throw error
  }
}

export async function startContainer(api: EngineApi, name: string, signal: AbortSignal): Promise<void> {
  await api.request(
    {
      doing: `start container ${name}`,
      method: 'POST',
      path: `/containers/${segment(name)}/start`,
      seconds: slowSeconds,
    },
    signal,
  )
}

export async function unpauseContainer(api: EngineApi, name: string, signal: AbortSignal): Promise<void> {
  try {
    await api.request(
      { doing: `unpause container ${name}`, method: 'POST', path: `/containers/${segment(name)}/unpause` },
      signal,
    )
  } catch (error) {
    if (!/is not paused/i.test(wordsOf(error))) throw error
  }
}

/** @param seconds from the request to stop until it is killed */
export async function stopContainer(api: EngineApi, name: string, seconds: number, signal: AbortSignal): Promise<void> {
  const call = {
    doing: `stop container ${name}`,
    method: 'POST',
    path: `/containers/${segment(name)}/stop`,
    query: { t: seconds },
  } as const
  await api.request({ ...call, seconds: seconds + slowSeconds }, signal)
}

export async function updateResources(
  api: EngineApi,
  name: string,
  resources: Resources,
  signal: AbortSignal,
): Promise<void> {
  const call = {
    doing: `change the limits of container ${name}`,
    method: 'POST',
    path: `/containers/${segment(name)}/update`,
  } as const
  await api.request({ ...call, body: changeable(resources) }, signal)
}

/** Kills it when it runs. */
export async function removeContainer(
  api: EngineApi,
  name: string,
  owner: Ownership,
  signal: AbortSignal,
): Promise<void> {
  const found = await findContainer(api, name, signal)
  if (found === undefined) return
  rejectForeign('container', name, found.Config.Labels, owner)
  const call = {
    doing: `remove container ${name}`,
    method: 'DELETE',
    path: `/containers/${found.Id}`,
    seconds: slowSeconds,
  } as const
  try {
    await api.request({ ...call, query: { force: true, v: true } }, signal)
  } catch (error) {
    if (statusOf(error) === 404) return
    // 409: its removal is in progress.
    if (statusOf(error) !== 409 || !(await isGone(api, found.Id, signal))) throw error
  }
}

async function isGone(api: EngineApi, id: string, signal: AbortSignal): Promise<boolean> {
  for (let attempt = 0; attempt < 50; attempt++) {
    if ((await findContainer(api, id, signal)) === undefined) return true
    await delay(200, undefined, { signal })
  }
  return false
}

/** @param name or id */
export async function findContainer(
  api: EngineApi,
  name: string,
  signal: AbortSignal,
): Promise<Dockerode.ContainerInspectInfo | undefined> {
  try {
    const found = await api.request(
      { doing: `look for container ${name}`, method: 'GET', path: `/containers/${segment(name)}/json` },
      signal,
    )
    return found as Dockerode.ContainerInspectInfo
  } catch (error) {
    if (statusOf(error) === 404) return undefined
    throw error
  }
}
