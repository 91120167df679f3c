// The objects of the simulated Docker Engine: containers, networks, volumes, and the data in volumes.
import {
  restartPolicy,
  type ContainerSpec,
  type ContainerState,
  type HostEvent,
  type Labels,
  type ObservedContainer,
  type Ownership,
} from '#control-plane/engines/container-host.ts'
import { stackOfVolume } from '#control-plane/stacks/object-names.ts'

/** An event with the installation label of its object. */
export type TaggedEvent = HostEvent & { installation: string }

/** Labels of an object; undefined for a foreign object without our labels. */
type MaybeLabels = Labels | undefined

export interface Location {
  networkId: string
  aliases: readonly string[]
  address: string | undefined
  /** An address that the swarm has assigned to another container, too; undefined: one of its own. */
  shared?: string
}

export interface Container {
  id: string
  name: string
  labels: MaybeLabels
  spec: Pick<ContainerSpec, 'image' | 'volumes' | 'published' | 'command'>
  state: ContainerState
  health: ObservedContainer['health']
  exitCode: number
  startedAt: string | undefined
  createdAt: string
  restarts: number
  resources: ContainerSpec['resources']
  /** Connections to networks, by the network's name. */
  slots: Map<string, Location>
  /** Number of starts. */
  run: number
  /** Simulated time in milliseconds from which the program responds. */
  respondsAt: number
  /** The program runs and never responds. */
  isWedged: boolean
  restartPolicy: string
  /** A caller stopped the container, so that the restart policy does not start it. */
  wasStopped: boolean
  /** Consecutive failures of the program. */
  failures: number
  /** The start was requested by a caller that no longer waits or leads. */
  startedLate: boolean
}

export interface Network {
  id: string
  name: string
  labels: MaybeLabels
  subnet: string
  internal: boolean
  madeLate: boolean
}

export interface Volume {
  name: string
  labels: MaybeLabels
  madeLate: boolean
  isMadeByEngine: boolean
  /** Whether the volume contains a Postgres cluster. */
  isCluster: boolean
  /** Whether Postgres may create a cluster in the volume, once; the control plane permits it. */
  mayBegin: boolean
  /** Homes in the cluster, by tenant ID. `isWhole`: all logins of the home work. */
  homes: Map<string, { isWhole: boolean }>
  /** IDs of tenants with files, or names of secrets. */
  files: Set<string>
  /** ID of the container that holds the cluster's lock; `waiting` are the containers that wait for it. */
  lock: string | undefined
  waiting: string[]
}

/** Hosts that have their networks in common. */
export interface Swarm {
  networks: Map<string, Network>
  /** Returns the containers of all hosts. */
  containers(): Iterable<Container>
  /** Receives each container that a host starts when it returns. */
  returned(container: Container): void
}

/** A change of an object. */
export type Change =
  | { kind: 'container'; what: 'created' | 'removed' | 'changed' | 'started'; object: Container }
  | { kind: 'network'; what: 'created' | 'removed'; object: Network }
  | { kind: 'network'; what: 'joined' | 'left'; object: Network; container: Container }
  | { kind: 'volume'; what: 'created' | 'removed' | 'changed'; object: Volume }
  | { kind: 'home'; what: 'created'; object: Volume; tenantId: string }
  | { kind: 'cluster'; what: 'created'; object: Volume }

/** Returns a container that was just created. @param network the first one of the specification */
export function madeContainer(
  id: string,
  spec: Omit<ContainerSpec, 'labels'> & { labels: MaybeLabels },
  network: Network | undefined,
  createdAt: string,
): Container {
  const [first] = spec.networks
  return {
    id,
    name: spec.name,
    labels: spec.labels,
    spec,
    state: 'created',
    health: 'none',
    exitCode: 0,
    startedAt: undefined,
    createdAt,
    restarts: 0,
    resources: { ...spec.resources },
    restartPolicy,
    run: 0,
    respondsAt: Infinity,
    isWedged: false,
    wasStopped: false,
    failures: 0,
    startedLate: false,
    slots: new Map(
      first === undefined || network === undefined
        ? []
        : [[first.network, { networkId: network.id, aliases: first.aliases, address: first.address }]],
    ),
  }
}

export function isOwned(labels: MaybeLabels, owner: Ownership): boolean {
  return (
    labels !== undefined &&
    labels.installation === owner.installation &&
    (owner.stack === undefined || labels.stack === owner.stack)
  )
}

/** Mount path that identifies a container of Postgres. */
export const clusterPath = '/var/lib/postgresql'

export function clusterOf(container: { spec: Pick<ContainerSpec, 'volumes'> }): string | undefined {
  return container.spec.volumes.find(({ path }) => path === clusterPath)?.volume
}

/** Returns the first address and the size of a CIDR range. */
function rangeOf(subnet: string): { first: number; size: number } {
  const [address = '', prefix = '32'] = subnet.split('/')
  return {
    first: address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0),
    size: 2 ** (32 - Number(prefix)),
  }
}

export function overlap(a: string, b: string): boolean {
  const [one, other] = [rangeOf(a), rangeOf(b)]
  return one.first < other.first + other.size && other.first < one.first + one.size
}

/** Whether a container is a member of a cluster, whose data Patroni creates or copies. */
export const isMember = ({ spec: { command } }: Pick<Container, 'spec'>) => command[0] === 'member'

/** Reports whether a volume has no data. Foreign volumes always have some. */
export const isEmpty = ({ isCluster, homes, files }: Volume) => !isCluster && homes.size === 0 && files.size === 0

export function isNamedLike(name: string, stack: string | undefined): boolean {
  const found = stackOfVolume(name)
  return stack === undefined ? found !== undefined : found === stack
}

export function ownerOf({ installation, stack }: Labels): Ownership {
  return { installation, stack }
}
