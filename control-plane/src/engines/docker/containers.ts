// Containers: creates or adopts, starts, stops, resizes and removes them by name.
import type Dockerode from 'dockerode'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type ContainerSpec,
  type LimitChanges,
  type Ownership,
  changeable,
  containerBody,
  rejectForeign,
} from '../index.ts'
import { segment, type EngineApi } from './engine-api.ts'
import { statusOf, rejectionText } from './errors.ts'
import { connect } from './networks.ts'
import { pollUntilFound } from './poll-until-found.ts'
import { requireVolume } from './volumes.ts'

/** Time limit for calls that wait until a container is gone or has stopped. */
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
    const found = await pollUntilFound(() => findContainer(api, spec.name, signal), signal)
    if (found === undefined) throw error
    rejectForeign('container', spec.name, found.Config.Labels, spec.labels)
  }
  await recheckVolumes(api, spec, signal)
  for (const { network, aliases, address } of spec.networks)
    await connect(api, network, spec.name, aliases, address, signal)
}

/** Checks that all volumes exist: the Engine would create a missing one, empty and without a label. */
async function requireVolumes(api: EngineApi, spec: ContainerSpec, signal: AbortSignal): Promise<void> {
  for (const { volume } of spec.volumes)
    await requireVolume(api, `create container ${spec.name}`, volume, spec.labels, signal)
}

/**
 * Checks the volumes again, and removes the container if one has disappeared since the first check: the Engine has then
 * created another. The container now protects its volumes from removal, so this check is final.
 */
async function recheckVolumes(api: EngineApi, spec: ContainerSpec, signal: AbortSignal): Promise<void> {
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
    if (!/is not paused/i.test(rejectionText(error))) throw error
  }
}

/** Stops a container. @param seconds between the stop signal and the kill */
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
  changes: LimitChanges,
  signal: AbortSignal,
): Promise<void> {
  const call = {
    doing: `change the limits of container ${name}`,
    method: 'POST',
    path: `/containers/${segment(name)}/update`,
  } as const
  await api.request({ ...call, body: changeable(changes) }, signal)
}

/** Removes a container, and kills it first if it runs. */
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
    // 409: its removal is already in progress.
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

/** Returns a container, or undefined if it does not exist. @param name or ID */
export async function findContainer(
  api: EngineApi,
  name: string,
  signal: AbortSignal,
): Promise<Dockerode.ContainerInspectInfo | undefined> {
  try {
    const found = await api.request(
      { doing: `find container ${name}`, method: 'GET', path: `/containers/${segment(name)}/json` },
      signal,
    )
    return found as Dockerode.ContainerInspectInfo
  } catch (error) {
    if (statusOf(error) === 404) return undefined
    throw error
  }
}
