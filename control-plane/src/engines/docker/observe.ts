// Reads everything with Tenantry's label on one host: three lists and one inspection per container, because lists omit
// limits and exit codes.
import type Dockerode from 'dockerode'
import PQueue from 'p-queue'
import { type ObservedHost, type Ownership, isUnlabelled, ownedFilter } from '../index.ts'
import { stackOfVolume, volumePrefix } from '../../stacks/index.ts'
import { findContainer } from './containers.ts'
import type { EngineApi } from './engine-api.ts'
import { observedContainer, observedNetwork, observedVolume, attachmentsOf } from './observed.ts'

/** States of a container that has its addresses. */
const runningStates = new Set(['running', 'paused'])

/** Maximum number of concurrent inspections. The Engine responds to each in about a millisecond. */
const concurrency = 8

export async function observe(api: EngineApi, owned: Ownership, signal: AbortSignal): Promise<ObservedHost> {
  const filters = ownedFilter(owned)
  const [listed, networks, volumes, named] = await Promise.all([
    list<Dockerode.ContainerInfo>(api, 'containers', '/containers/json', { all: true, filters }, signal),
    list<Dockerode.NetworkInspectInfo>(api, 'networks', '/networks', { filters }, signal),
    listVolumes(api, filters, signal),
    listVolumes(api, { name: [volumePrefix(owned.stack)] }, signal),
  ])
  const ids = new Map(networks.map(({ Name, Id }) => [Name, Id]))
  const [containers, members] = await Promise.all([inspectAll(api, listed, signal), membersOf(api, ids, signal)])
  return {
    containers: containers.map((container) => observedContainer(container, ids)).filter((one) => one !== undefined),
    networks: networks
      .map((network) => observedNetwork(network, members.get(network.Name) ?? new Map()))
      .filter((one) => one !== undefined),
    volumes: volumes.map(observedVolume).filter((one) => one !== undefined),
    unlabelledVolumes: named
      .filter((volume) => isUnlabelled(volume) && isNamedLike(volume.Name, owned.stack))
      .map(({ Name }) => Name),
  }
}

/** Whether a name is one of the stack's volumes: the Engine's filter also matches parts of names. */
function isNamedLike(name: string, stack: string | undefined): boolean {
  return stack === undefined ? stackOfVolume(name) !== undefined : name.startsWith(volumePrefix(stack))
}

async function listVolumes(
  api: EngineApi,
  filters: object,
  signal: AbortSignal,
): Promise<Dockerode.VolumeInspectInfo[]> {
  const found = await api.request(
    { doing: 'list volumes', method: 'GET', path: '/volumes', query: { filters } },
    signal,
  )
  return (found as { Volumes: Dockerode.VolumeInspectInfo[] | null }).Volumes ?? []
}

async function list<T>(
  api: EngineApi,
  what: string,
  path: string,
  query: { all?: boolean; filters: object },
  signal: AbortSignal,
): Promise<T[]> {
  return (await api.request({ doing: `list ${what}`, method: 'GET', path, query }, signal)) as T[]
}

/** Inspects containers, and omits those that disappear between the list and the inspection. */
async function inspectAll(
  api: EngineApi,
  listed: readonly Dockerode.ContainerInfo[],
  signal: AbortSignal,
): Promise<Dockerode.ContainerInspectInfo[]> {
  const queue = new PQueue({ concurrency })
  const found = await queue.addAll(
    listed.map(
      ({ Id }) =>
        () =>
          findContainer(api, Id, signal),
    ),
  )
  return found.filter((one) => one !== undefined)
}

/**
 * Returns the addresses of the containers on each network, by their names. Attached containers are included, and stopped ones, whose
 * addresses are empty. A network's own inspection lists running ones only.
 */
async function membersOf(
  api: EngineApi,
  ids: ReadonlyMap<string, string>,
  signal: AbortSignal,
): Promise<Map<string, Map<string, string>>> {
  const members = new Map([...ids.keys()].map((name) => [name, new Map<string, string>()]))
  if (ids.size === 0) return members
  const query = { all: true, filters: { network: [...ids.keys()] } }
  for (const { Names, State, NetworkSettings } of await list<Dockerode.ContainerInfo>(
    api,
    'members of networks',
    '/containers/json',
    query,
    signal,
  )) {
    // The first is its own name; others come from links.
    const name = Names.find((one) => one.lastIndexOf('/') === 0)?.slice(1) ?? ''
    for (const [network, { IPAddress: address }] of Object.entries(attachmentsOf(NetworkSettings.Networks, ids)))
      members.get(network)?.set(name, runningStates.has(State) ? address : '')
  }
  return members
}
