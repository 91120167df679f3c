// Converts the Engine's descriptions of objects to what the container engines read. Pure.
import type Dockerode from 'dockerode'
import {
  type ContainerState,
  type ObservedContainer,
  type ObservedNetwork,
  type ObservedVolume,
  fromDocker,
} from '../index.ts'

const states: readonly string[] = [
  'created',
  'running',
  'paused',
  'restarting',
  'exited',
  'dead',
  'removing',
] satisfies ContainerState[]
const healths: readonly string[] = ['starting', 'healthy', 'unhealthy'] satisfies ObservedContainer['health'][]

/**
 * Converts a container; undefined if its labels are not Tenantry's.
 * @param networkIds IDs of the existing networks, by name
 */
export function observedContainer(
  found: Dockerode.ContainerInspectInfo,
  networkIds: ReadonlyMap<string, string>,
): ObservedContainer | undefined {
  const labels = fromDocker(found.Config.Labels)
  if (labels === undefined) return undefined
  const { State: state, HostConfig: host } = found
  return {
    id: found.Id,
    name: found.Name.replace(/^\//, ''),
    labels,
    state: isState(state.Status) ? state.Status : 'dead',
    health: isHealth(state.Health?.Status) ? state.Health.Status : 'none',
    exitCode: state.ExitCode,
    startedAt: startOf(state.StartedAt),
    createdAt: found.Created,
    restarts: found.RestartCount,
    outOfMemory: state.OOMKilled,
    imageId: found.Image,
    resources: {
      memoryBytes: host.Memory ?? 0,
      cpuMillis: Math.round((host.NanoCpus ?? 0) / 1_000_000),
      pids: host.PidsLimit ?? 0,
    },
    restartPolicy: host.RestartPolicy?.Name ?? '',
    networks: attachedNetworks(found, networkIds),
  }
}

/** Docker's option of an overlay network whose packets are encrypted. It has no value. */
export const encryptedOption = 'encrypted'

/**
 * Converts a network; undefined if its labels are not Tenantry's.
 * @param addresses of the containers on it, by their names; empty for those that do not run
 */
export function observedNetwork(
  found: Dockerode.NetworkInspectInfo,
  addresses: ReadonlyMap<string, string>,
): ObservedNetwork | undefined {
  const labels = fromDocker(found.Labels)
  if (labels === undefined) return undefined
  return {
    id: found.Id,
    name: found.Name,
    labels,
    subnet: found.IPAM?.Config?.[0]?.Subnet ?? '',
    internal: found.Internal,
    ...(encryptedOption in (found.Options ?? {}) ? { isEncrypted: true } : {}),
    members: [...addresses.keys()],
    addresses: Object.fromEntries([...addresses].filter(([, address]) => address !== '')),
  }
}

export function observedVolume(
  found: Pick<Dockerode.VolumeInspectInfo, 'Name' | 'Labels'>,
): ObservedVolume | undefined {
  const labels = fromDocker(found.Labels)
  return labels === undefined ? undefined : { name: found.Name, labels }
}

/**
 * Returns a container's networks with its aliases and address. @param networkIds IDs of the existing networks, by name
 */
export function attachedNetworks(
  { Id, NetworkSettings }: Dockerode.ContainerInspectInfo,
  networkIds: ReadonlyMap<string, string>,
): ObservedContainer['networks'] {
  const present = Object.entries(attachmentsOf(NetworkSettings.Networks, networkIds))
  return Object.fromEntries(present.map(([name, network]) => [name, attachment(Id, network)]))
}

/**
 * Filters out networks that were removed. A stopped container keeps its attachment to one, even if another has got that
 * name.
 */
export function attachmentsOf<T extends { NetworkID: string }>(
  networks: Record<string, T>,
  networkIds: ReadonlyMap<string, string>,
): Record<string, T> {
  return Object.fromEntries(
    Object.entries(networks).filter(([name, { NetworkID: id }]) => id === '' || id === (networkIds.get(name) ?? id)),
  )
}

type FoundAttachment = Pick<Dockerode.NetworkInfo, 'IPAddress'> & { IPAMConfig?: unknown; Aliases?: unknown }

/**
 * Returns the aliases without the container's short ID, which older Engines add. A container that is not running has
 * only the address that it requests.
 */
function attachment(
  containerId: string,
  { Aliases: aliases, IPAddress: address, IPAMConfig: ipam }: FoundAttachment,
): ObservedContainer['networks'][string] {
  const named = Array.isArray(aliases) ? aliases.filter((alias): alias is string => typeof alias === 'string') : []
  return {
    aliases: named.filter((alias) => !containerId.startsWith(alias)),
    address: address || requestedAddress(ipam),
  }
}

function requestedAddress(ipam: unknown): string {
  const has = typeof ipam === 'object' && ipam !== null && 'IPv4Address' in ipam
  return has && typeof ipam.IPv4Address === 'string' ? ipam.IPv4Address : ''
}

/** Returns the time of the start. The Engine writes the year 1 for a container that was never started. */
function startOf(time: string): string | undefined {
  return time.startsWith('0001-') ? undefined : time
}

function isState(status: string): status is ContainerState {
  return states.includes(status)
}

function isHealth(status: string | undefined): status is Exclude<ObservedContainer['health'], 'none'> {
  return status !== undefined && healths.includes(status)
}
