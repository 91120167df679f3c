// The networks, volumes and services that an engine should create for a tenant or a region. Pure.
import { createHash } from 'node:crypto'
import type { SecretText } from './secret-text.ts'

/** A check by which a host observes whether a service responds. */
export interface HealthCheck {
  /** Arguments of the program that runs inside; exit code 0 means healthy. */
  command: readonly string[]
  intervalSeconds: number
  timeoutSeconds: number
  /** Number of consecutive failures that make a service unhealthy. */
  retries: number
  /** Seconds after the start in which failures do not count. */
  startSeconds: number
}

/** Limits of one service's container; `pids` limits its processes and threads. */
export interface Resources {
  memoryBytes: number
  /** Thousandths of a core. */
  cpuMillis: number
  pids: number
}

/** Attachment of a service to one of its stack's networks. */
export interface Attachment {
  network: string
  aliases: readonly string[]
  /** Fixed address; undefined for any of the subnet. */
  address?: string
}

/** A port of a service to which the host forwards. */
export interface Published {
  containerPort: number
  /** Address and port on the host. */
  hostAddress: string
  hostPort: number
}

/** A program that should run as one container, with everything that it needs. */
export interface Service {
  name: string
  /** ID of the host that it runs on; absent on an engine with one host. */
  host?: string
  /** Digest of the image, `sha256:…` or `name@sha256:…`, because a name alone could later refer to another image. */
  image: string
  command: readonly string[]
  environment: Readonly<Record<string, string>>
  /** Texts of secrets, by file name below `/run/secrets`. They are passed as files, never in the environment. */
  secrets: Readonly<Record<string, SecretText>>
  /** Paths inside the container, by volume. */
  volumes: Readonly<Record<string, string>>
  /** Mount options of temporary writable directories, by path inside the container. */
  scratch: Readonly<Record<string, string>>
  networks: readonly Attachment[]
  published: readonly Published[]
  /** Whether other stacks attach the service to their networks. Any other service is on its own stack's networks only. */
  isAttached: boolean
  health: HealthCheck
  /** Limits, which can change while the service runs. Any other change needs a new container. */
  resources: Resources
  user: string
  /** Seconds between the stop signal and the kill. */
  stopSeconds: number
  /** Order of a replacement; `stop-first` for services that must not run twice, mainly databases. */
  replace: 'start-first' | 'stop-first'
}

/** A container of another stack, by its name on its host. */
export interface OtherContainer {
  container: string
  /** ID of the host that it runs on; absent on an engine with one host. */
  host?: string
}

/** A container of another stack that belongs on one of the stack's networks: a gateway of the region. */
export interface AttachedContainer extends OtherContainer {
  alias: string
  /** Fixed address; undefined for any of the subnet. */
  address?: string
}

/** A network of a stack. Only the stack's services and the attached containers are on it. */
export interface Network {
  name: string
  /** CIDR of the network. It is fixed, because an engine's own pools hold few networks. */
  subnet: string
  /** CIDR of the addresses that are assigned without a request for one; absent: the whole subnet. */
  assigned?: string
  /** Whether the network has no route to the outside, except through attached containers. */
  internal: boolean
  /** Whether the host itself has an address on the network. */
  hostAddress: boolean
  /** Whether the engine encrypts the packets between its hosts; absent: it does not. A network that exists stays as it is. */
  isEncrypted?: boolean
  attachedContainers: readonly AttachedContainer[]
}

/** A volume of a stack, which outlives its containers. */
export interface Volume {
  name: string
  /** ID of the host that it is on; absent on an engine with one host. */
  host?: string
  /** Whether the volume has held data, so that its absence is a failure and no empty one may be created. */
  mustExist: boolean
  /**
   * Whether the program needs the control plane's permission, a file inside the volume, to start on an empty one. The
   * permission is created with a container while `mustExist` is false, and the program removes it.
   */
  isGuarded: boolean
}

/** All objects that should exist on an engine for one tenant or one region. */
export interface Stack {
  /** The tenant's ID, or `region-<region>`. */
  id: string
  /** Whether services run. Suspended and paused stacks are stopped and retain their data. */
  state: 'running' | 'stopped'
  networks: readonly Network[]
  volumes: readonly Volume[]
  services: readonly Service[]
}

/**
 * Returns a hash that is equal for equal services, whatever the order of their keys. If it differs, the container must
 * be replaced.
 */
export function specHash(service: Service): string {
  const known = hashes.get(service)
  if (known !== undefined) return known
  const hash = hashOf(service)
  hashes.set(service, hash)
  return hash
}

/** The hashes of services, each of which is needed for the names of several objects. */
const hashes = new WeakMap<Service, string>()

function hashOf(service: Service): string {
  const { resources: _resources, replace: _replace, stopSeconds: _stopSeconds, isAttached, ...replacing } = service
  // Existing containers have hashes with the key "isGuest". Another key would replace all of them.
  return createHash('sha256')
    .update(JSON.stringify(ordered({ ...replacing, isGuest: isAttached })))
    .digest('hex')
}

/** Returns a value whose members are in the order of their names. */
function ordered(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(ordered)
  const copy: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) copy[name] = ordered(member)
  return copy
}
