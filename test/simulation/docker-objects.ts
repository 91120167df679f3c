// What there is on the simulated Docker Engine: containers, networks, volumes, and what the volumes hold.
import type {
  ContainerSpec,
  ContainerState,
  HostEvent,
  Labels,
  ObservedContainer,
  Ownership,
} from '#control-plane/engines/container-host.ts'
import { stackOfVolume } from '#control-plane/stacks/object-names.ts'

/** With whose label. */
export type TaggedEvent = HostEvent & { installation: string }

/** Undefined: somebody else's, without a label of ours. */
type MaybeLabels = Labels | undefined

export interface Location {
  networkId: string
  aliases: readonly string[]
  address: string | undefined
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
  restarts: number
  resources: ContainerSpec['resources']
  /** By the network's name. */
  slots: Map<string, Location>
  /** Counts its starts. */
  run: number
  /** Milliseconds of the run from which its program answers. */
  respondsAt: number
  /** It runs and will never answer. */
  isWedged: boolean
  restartPolicy: string
  /** The restart policy leaves it alone. */
  wasStopped: boolean
  /** Failures of its program in a row. */
  failures: number
  /** Nobody who waits for it, or leads, had asked for its start. */
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
  /** A Postgres cluster was made in it. */
  isCluster: boolean
  /** The control plane has permitted to make a cluster in it; used up by that. */
  mayBegin: boolean
  /** Of the cluster: tenant → whether its logins are whole. */
  homes: Map<string, { isWhole: boolean }>
  /** Tenants with files, or names of secrets. */
  files: Set<string>
  /** Container that holds the lock of the cluster, and those that wait for it. */
  lock: string | undefined
  waiting: string[]
}

/** Something that was done to an object. */
export type Change =
  | { kind: 'container'; what: 'created' | 'removed' | 'changed' | 'started'; object: Container }
  | { kind: 'network'; what: 'created' | 'removed'; object: Network }
  | { kind: 'network'; what: 'joined' | 'left'; object: Network; container: Container }
  | { kind: 'volume'; what: 'created' | 'removed' | 'changed'; object: Volume }
  | { kind: 'home'; what: 'created'; object: Volume; tenantId: string }
  | { kind: 'cluster'; what: 'created'; object: Volume }

export function isOwned(labels: MaybeLabels, owner: Ownership): boolean {
  return (
    labels !== undefined &&
    labels.installation === owner.installation &&
    (owner.stack === undefined || labels.stack === owner.stack)
  )
}

/** Postgres is known by where its data is. */
export const clusterPath = '/var/lib/postgresql'

export function clusterOf(container: { spec: Pick<ContainerSpec, 'volumes'> }): string | undefined {
  return container.spec.volumes.find(({ path }) => path === clusterPath)?.volume
}

/** First address and size of a CIDR. */
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

/** Undefined labels alone: strangers' volumes hold something. */
export const isEmpty = ({ isCluster, homes, files }: Volume) => !isCluster && homes.size === 0 && files.size === 0

export function isNamedLike(name: string, stack: string | undefined): boolean {
  const found = stackOfVolume(name)
  return stack === undefined ? found !== undefined : found === stack
}

export function ownerOf({ installation, stack }: Labels): Ownership {
  return { installation, stack }
}
