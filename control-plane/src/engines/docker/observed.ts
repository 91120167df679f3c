// What the Engine tells of an object → what the container engines read. Pure.
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
 * Undefined when its labels are not Tenantry's.
 * @param networkIds by name, of networks that are there now
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
    restarts: found.RestartCount,
    outOfMemory: state.OOMKilled,
    imageId: found.Image,
    resources: {
      memoryBytes: host.Memory ?? 0,
      cpuMillis: Math.round((host.NanoCpus ?? 0) / 1_000_000),
      pids: host.PidsLimit ?? 0,
    },
    restartPolicy: host.RestartPolicy?.Name ?? '',
    networks: slots(found, networkIds),
  }
}

/** @param members names of the containers on it */
export function observedNetwork(
  found: Dockerode.NetworkInspectInfo,
  members: readonly string[],
): ObservedNetwork | undefined {
  const labels = fromDocker(found.Labels)
  if (labels === undefined) return undefined
  return {
    id: found.Id,
    name: found.Name,
    labels,
    subnet: found.IPAM?.Config?.[0]?.Subnet ?? '',
    internal: found.Internal,
    members,
  }
}

export function observedVolume(
  found: Pick<Dockerode.VolumeInspectInfo, 'Name' | 'Labels'>,
): ObservedVolume | undefined {
  const labels = fromDocker(found.Labels)
  return labels === undefined ? undefined : { name: found.Name, labels }
}

/** @param networkIds by name, of networks that are there now */
export function slots(
  { Id, NetworkSettings }: Dockerode.ContainerInspectInfo,
  networkIds: ReadonlyMap<string, string>,
): ObservedContainer['networks'] {
  const present = Object.entries(attachmentsOf(NetworkSettings.Networks, networkIds))
  return Object.fromEntries(present.map(([name, network]) => [name, location(Id, network)]))
}

/** A stopped container keeps its place on a network that was removed, even when another has got that name: it is not on that one. */
export function attachmentsOf<T extends { NetworkID: string }>(
  networks: Record<string, T>,
  networkIds: ReadonlyMap<string, string>,
): Record<string, T> {
  return Object.fromEntries(
    Object.entries(networks).filter(([name, { NetworkID: id }]) => id === '' || id === (networkIds.get(name) ?? id)),
  )
}

type FoundPosition = Pick<Dockerode.NetworkInfo, 'IPAddress'> & { IPAMConfig?: unknown; Aliases?: unknown }

/** Older Engines add the container's short id to its aliases. A container that does not run has only the address it asks for. */
function location(
  containerId: string,
  { Aliases: aliases, IPAddress: address, IPAMConfig: wanted }: FoundPosition,
): ObservedContainer['networks'][string] {
  const named = Array.isArray(aliases) ? aliases.filter((alias): alias is string => typeof alias === 'string') : []
  return { aliases: named.filter((alias) => !containerId.startsWith(alias)), address: address || wantedAddress(wanted) }
}

function wantedAddress(wanted: unknown): string {
  const has = typeof wanted === 'object' && wanted !== null && 'IPv4Address' in wanted
  return has && typeof wanted.IPv4Address === 'string' ? wanted.IPv4Address : ''
}

/** The Engine writes year 1 for never. */
function startOf(time: string): string | undefined {
  return time.startsWith('0001-') ? undefined : time
}

function isState(status: string): status is ContainerState {
  return states.includes(status)
}

function isHealth(status: string | undefined): status is Exclude<ObservedContainer['health'], 'none'> {
  return status !== undefined && healths.includes(status)
}
