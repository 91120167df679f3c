// Networks: created once by name, although the Engine allows several of one name, and removed with all their attachments.
import type Dockerode from 'dockerode'
import { setTimeout as delay } from 'node:timers/promises'
import { type NetworkSpec, type Ownership, EngineError, endpoint, rejectForeign, toDocker } from '../index.ts'
import { segment, type EngineApi } from './engine-api.ts'
import { statusOf, rejectionText } from './errors.ts'
import { attachedNetworks, encryptedOption } from './observed.ts'
import { pollUntilFound } from './poll-until-found.ts'

export async function createNetwork(api: EngineApi, spec: NetworkSpec, signal: AbortSignal): Promise<void> {
  if ((await oursNamed(api, spec.name, spec.labels, signal)).length > 0) return
  let made: string | undefined
  try {
    const call = {
      doing: `create network ${spec.name}`,
      method: 'POST',
      path: '/networks/create',
      body: networkBody(spec),
    } as const
    made = ((await api.request(call, signal)) as { Id: string }).Id
  } catch (error) {
    if (!(await appears(api, spec, error, signal))) throw error
  }
  // Two calls may create it at once. Each of them removes all but the oldest.
  const [oldest] = await oursNamed(api, spec.name, spec.labels, signal)
  if (made !== undefined && oldest?.Id !== made) await remove(api, spec.name, made, signal)
}

/** Whether a network exists after a rejection: a concurrent call of Tenantry may have taken its name or subnet first. */
async function appears(
  api: EngineApi,
  { name, labels }: NetworkSpec,
  rejection: unknown,
  signal: AbortSignal,
): Promise<boolean> {
  const isTaken = statusOf(rejection) === 409 || (rejection instanceof EngineError && rejection.code === 'SUBNET_TAKEN')
  if (!isTaken) return false
  const found = await pollUntilFound(async () => (await oursNamed(api, name, labels, signal))[0], signal)
  return found !== undefined
}

function networkBody({ name, labels, subnet, ...spec }: NetworkSpec): Dockerode.NetworkCreateOptions {
  const { internal, hostAddress, spansHosts = false, assigned, isEncrypted = false } = spec
  return {
    Name: name,
    CheckDuplicate: true,
    Driver: spansHosts ? 'overlay' : 'bridge',
    Internal: internal,
    Attachable: spansHosts,
    EnableIPv6: false,
    IPAM: { Driver: 'default', Config: [{ Subnet: subnet, ...(assigned === undefined ? {} : { IPRange: assigned }) }] },
    Options: {
      ...(spansHosts || hostAddress ? {} : { 'com.docker.network.bridge.inhibit_ipv4': 'true' }),
      ...(isEncrypted ? { [encryptedOption]: '' } : {}),
    },
    Labels: toDocker(labels),
  }
}

/** Connects a container. One that is on the network with other aliases or another address leaves it for a moment. */
export async function connect(
  api: EngineApi,
  network: string,
  container: string,
  aliases: readonly string[],
  address: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const doing = `connect ${container} to network ${network}`
  const found = (await api.request(
    { doing, method: 'GET', path: `/containers/${segment(container)}/json` },
    signal,
  )) as Dockerode.ContainerInspectInfo
  if (network in found.NetworkSettings.Networks) {
    const { Id } = (await api.request(
      { doing, method: 'GET', path: `/networks/${segment(network)}` },
      signal,
    )) as Dockerode.NetworkInspectInfo
    const attachment = attachedNetworks(found, new Map([[network, Id]]))[network]
    if (
      attachment !== undefined &&
      aliases.every((alias) => attachment.aliases.includes(alias)) &&
      (address ?? attachment.address) === attachment.address
    )
      return
    await disconnect(api, doing, network, container, signal)
  }
  const body = { Container: container, EndpointConfig: endpoint(aliases, address) }
  await api.request({ doing, method: 'POST', path: `/networks/${segment(network)}/connect`, body }, signal)
}

/** Disconnects a container. One that is not on the network, or is gone, is not an error. */
export async function disconnect(
  api: EngineApi,
  doing: string,
  network: string,
  container: string,
  signal: AbortSignal,
): Promise<void> {
  try {
    const body = { Container: container, Force: true }
    await api.request({ doing, method: 'POST', path: `/networks/${segment(network)}/disconnect`, body }, signal)
  } catch (error) {
    if (statusOf(error) !== 404 && !/is not connected/i.test(rejectionText(error))) throw error
  }
}

export async function removeNetwork(
  api: EngineApi,
  name: string,
  owner: Ownership,
  signal: AbortSignal,
): Promise<void> {
  for (const { Id } of await oursNamed(api, name, owner, signal)) await remove(api, name, Id, signal)
}

/** Disconnects all containers of this host from a network. */
export async function emptyNetwork(api: EngineApi, name: string, owner: Ownership, signal: AbortSignal): Promise<void> {
  for (const { Id } of await oursNamed(api, name, owner, signal))
    await disconnectAll(api, `empty network ${name}`, Id, signal)
}

/** Maximum number of attempts: a container may connect while the others are disconnected. */
const attempts = 5

async function remove(api: EngineApi, name: string, id: string, signal: AbortSignal): Promise<void> {
  const doing = `remove network ${name}`
  for (let attempt = 1; ; attempt++) {
    try {
      await disconnectAll(api, doing, id, signal)
      await api.request({ doing, method: 'DELETE', path: `/networks/${id}` }, signal)
      return
    } catch (error) {
      if (statusOf(error) === 404) return
      // 403: it has active endpoints. A network that spans hosts is in use until its managers know of the disconnections.
      const isInUse = statusOf(error) === 403 || /is in use by task/i.test(rejectionText(error))
      if (!isInUse || attempt === attempts) throw error
      await delay(100 * attempt, undefined, { signal })
    }
  }
}

/** Disconnects all containers. It includes stopped ones, which could not be started again with a network that is gone. */
async function disconnectAll(api: EngineApi, doing: string, id: string, signal: AbortSignal): Promise<void> {
  const query = { all: true, filters: { network: [id] } }
  const members = (await api.request(
    { doing, method: 'GET', path: '/containers/json', query },
    signal,
  )) as Dockerode.ContainerInfo[]
  for (const member of members) await disconnect(api, doing, id, member.Id, signal)
}

/**
 * Returns the networks of a name, the oldest first. @throws EngineError `FOREIGN_OBJECT` if one of that name is not the
 * owner's
 */
async function oursNamed(
  api: EngineApi,
  name: string,
  owner: Ownership,
  signal: AbortSignal,
): Promise<Dockerode.NetworkInspectInfo[]> {
  const query = { filters: { name: [name] } }
  const found = (await api.request(
    { doing: `find network ${name}`, method: 'GET', path: '/networks', query },
    signal,
  )) as Dockerode.NetworkInspectInfo[]
  // The Engine's filter also matches parts of names.
  const named = found.filter((network) => network.Name === name)
  for (const network of named) rejectForeign('network', name, network.Labels, owner)
  return named.sort((a, b) => compare(a.Created, b.Created) || compare(a.Id, b.Id))
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
