// The calls that the container engines make to one host. The real host speaks to a Docker Engine; tests inject faults with a
// simulated one. The interface is thin: an implementation takes no decisions.
import type { HealthCheck, Published, Resources } from '../stacks/index.ts'

/**
 * Labels of every object of Tenantry. An object without `installation`, or with another value, is foreign and never
 * touched.
 */
export interface Labels {
  installation: string
  stack: string
  /** Name of the service; set on containers and on volumes of secrets. */
  service?: string
  /** `specHash` of the service that a container was made from. */
  spec?: string
}

/** Owner of the objects that a call may see or touch: an installation or, if `stack` is set, that stack alone. */
export interface Ownership {
  installation: string
  stack?: string
}

/** Restart policy of all containers: the host restarts a container that ends by itself, unless it was stopped. */
export const restartPolicy = 'unless-stopped'

/** Limits and restart policy of a container to set. What is left out stays as it is. */
export type LimitChanges = Partial<Resources> & { restartPolicy?: typeof restartPolicy }

/** State of a container, in the Docker Engine's terms. */
export type ContainerState = 'created' | 'running' | 'paused' | 'restarting' | 'exited' | 'dead' | 'removing'

/**
 * A container as the host reports it, with everything that can be changed by hand and is compared with the
 * specification.
 */
export interface ObservedContainer {
  id: string
  name: string
  /** ID of its host; absent on an engine with one host. */
  host?: string
  labels: Labels
  state: ContainerState
  /** Result of the health check; `none` without a health check or before its first run. */
  health: 'none' | 'starting' | 'healthy' | 'unhealthy'
  exitCode: number
  /** ISO 8601, UTC; undefined before the first start. */
  startedAt: string | undefined
  /** Time of its creation, in ISO 8601. */
  createdAt: string
  restarts: number
  outOfMemory: boolean
  /** Digest of the image: `sha256:…`. */
  imageId: string
  resources: Resources
  /** Name of the restart policy on the host. */
  restartPolicy: string
  /** Aliases and address, by network name. */
  networks: Readonly<Record<string, { aliases: readonly string[]; address: string }>>
}

/** A network of ours as the host reports it. */
export interface ObservedNetwork {
  id: string
  name: string
  labels: Labels
  subnet: string
  internal: boolean
  /** Whether its packets are encrypted between hosts; absent: they are not. */
  isEncrypted?: boolean
  /** Names of the containers on it, running or not, as far as the hosts report them; `memberName` makes them. */
  members: readonly string[]
  /** Addresses of the running members, by their names. */
  addresses: Readonly<Record<string, string>>
}

/** A volume of ours as the host reports it. */
export interface ObservedVolume {
  name: string
  /** ID of its host; absent on an engine with one host. */
  host?: string
  labels: Labels
}

/** Everything of one owner on an engine's hosts, read at one moment. */
export interface ObservedHost {
  /** IDs of the hosts that did not respond, whose objects are not known; absent: all responded. */
  unreachableHosts?: readonly string[]
  containers: readonly ObservedContainer[]
  networks: readonly ObservedNetwork[]
  volumes: readonly ObservedVolume[]
  /**
   * Names of volumes that are named like Tenantry's but have no label. A host creates one for a container whose volume
   * is gone.
   */
  unlabelledVolumes: readonly string[]
}

/** An image on the host. */
export interface HostImage {
  /** Digest: `sha256:…`. */
  id: string
  /** Value of its component label, for example `runtime`; undefined for an image without that label. */
  component: string | undefined
}

/** A container to be created; all names are the host's, as `stacks/object-names.ts` makes them. */
export interface ContainerSpec {
  name: string
  labels: Labels
  image: string
  command: readonly string[]
  environment: Readonly<Record<string, string>>
  user: string
  /** Volumes by their name on the host, with the path inside the container and whether they are read-only. */
  volumes: readonly { volume: string; path: string; readOnly: boolean }[]
  scratch: Readonly<Record<string, string>>
  /** Networks of the container. It is created on the first one and connected to the others before it is started. */
  networks: readonly { network: string; aliases: readonly string[]; address?: string }[]
  published: readonly Published[]
  health: HealthCheck
  resources: Resources
  stopSeconds: number
}

/** A network to be created. `subnet` is a CIDR; `hostAddress` gives the host itself an address on it. */
export interface NetworkSpec {
  name: string
  labels: Labels
  subnet: string
  internal: boolean
  hostAddress: boolean
  /** CIDR of the addresses that are assigned without a request for one; absent: the whole subnet. */
  assigned?: string
  /** Whether the network connects containers on several hosts; absent: it exists on one. */
  spansHosts?: boolean
  /** Whether its packets are encrypted between the hosts; absent: they are not. */
  isEncrypted?: boolean
}

/** A volume to be created, empty. */
export interface VolumeSpec {
  name: string
  labels: Labels
}

/** Description of a host and its size, for the operators' view of a region and for limits that must fit it. */
export interface HostInfo {
  name: string
  apiVersion: string
  memoryBytes: number
  cpus: number
  /** Space where the host stores images and volumes; undefined if it cannot be read. */
  disk: { freeBytes: number; totalBytes: number } | undefined
  /** Warnings for the operator, for example of limits that this kernel does not enforce. */
  warnings: readonly string[]
}

/** An event of an object with Tenantry's label. */
export interface HostEvent {
  stack: string
  /** Type and action, for example `container die` or `network disconnect`. */
  what: string
}

/** One line that a service wrote. */
export interface LogLine {
  /** Time in ISO 8601, UTC, with the host's nanoseconds. */
  at: string
  stream: 'stdout' | 'stderr'
  text: string
}

/** Selection of lines of a log; with `follow`, lines that are written later are included until the signal aborts. */
export interface LogOptions {
  follow: boolean
  /** Maximum number of lines, counted from the end. */
  tail: number
  /** Time of the first line, in ISO 8601. */
  since?: string
}

/** One reading of a container's cgroup. */
export interface ContainerStats {
  /** CPU time since the container's start. */
  cpuNanoseconds: number
  /** Memory in use, without the page cache that can be dropped. */
  memoryBytes: number
}

/** Options of a program that runs in a container. */
export interface ExecOptions {
  /** Data for standard input, which is closed at its end. */
  input?: string | AsyncIterable<Uint8Array>
  signal: AbortSignal
  /** Maximum number of bytes of standard output that `exec` collects; 16 MiB by default. More is an error. */
  maxOutputBytes?: number
}

/** Result of a program in a container. An exit code other than 0 is a result, not an error. */
export interface ExecResult {
  code: number
  stdout: string
  stderr: string
}

/**
 * A host of containers. Every call throws `EngineError`, or its signal's reason once that is aborted; none retries by
 * itself. All IDs and names are the host's.
 */
export interface ContainerHost {
  /** Reads the host's size and version. */
  info(signal: AbortSignal): Promise<HostInfo>
  /** Reads every object with Tenantry's label. */
  observe(owned: Ownership, signal: AbortSignal): Promise<ObservedHost>
  /** Returns an image, or undefined if the host does not have it. */
  image(reference: string, signal: AbortSignal): Promise<HostImage | undefined>

  /**
   * Creates a network, or adopts Tenantry's own of that name. @throws EngineError `FOREIGN_OBJECT` if a foreign one has
   * the name
   */
  createNetwork(spec: NetworkSpec, signal: AbortSignal): Promise<void>
  /**
   * Creates a volume, or adopts Tenantry's own of that name. It replaces an unlabelled volume that is empty and not in
   * use.
   */
  createVolume(spec: VolumeSpec, signal: AbortSignal): Promise<void>
  /**
   * Creates a container with all its networks and does not start it. It adopts Tenantry's own container of that name
   * unchanged.
   * @throws EngineError `VOLUME_MISSING`, also if a volume disappears during the call: the container then does not stay
   * on the volume that the host created instead
   */
  createContainer(spec: ContainerSpec, signal: AbortSignal): Promise<void>
  /** Starts a created or stopped container, which may still be unhealthy when the call returns. */
  startContainer(name: string, signal: AbortSignal): Promise<void>
  /** Resumes the processes of a paused container. */
  unpauseContainer(name: string, signal: AbortSignal): Promise<void>
  /** Sends a container the stop signal, and kills it after `seconds`. */
  stopContainer(name: string, seconds: number, signal: AbortSignal): Promise<void>
  /** Changes limits and restart policy of a container, and nothing that the changes leave out. */
  updateResources(name: string, changes: LimitChanges, signal: AbortSignal): Promise<void>
  /** Puts a container on a network, at a fixed address or at any of the subnet. */
  connect(
    network: string,
    container: string,
    aliases: readonly string[],
    address: string | undefined,
    signal: AbortSignal,
  ): Promise<void>
  /** Disconnects a container from a network. A container that is not on it is not an error. */
  disconnect(network: string, container: string, signal: AbortSignal): Promise<void>
  /** Replaces the content of a volume by files of mode 0400 that belong to `user` (`uid` or `uid:gid`). */
  writeFiles(
    volume: string,
    image: string,
    user: string,
    files: Readonly<Record<string, string>>,
    labels: Labels,
    signal: AbortSignal,
  ): Promise<void>
  /**
   * Adds files of mode 0400 to a volume of `user` and leaves its other files in place.
   * @throws EngineError `VOLUME_MISSING` for a volume that is gone, also if the host created another of that name
   */
  addFiles: ContainerHost['writeFiles']

  /** Removes a container. An absent one is not an error, a foreign one is. */
  removeContainer(name: string, owner: Ownership, signal: AbortSignal): Promise<void>
  /** Removes a network after it has disconnected all containers, attached ones included. */
  removeNetwork(name: string, owner: Ownership, signal: AbortSignal): Promise<void>
  /** Removes a volume and its content. An absent one is not an error, a foreign one is. */
  removeVolume(name: string, owner: Ownership, signal: AbortSignal): Promise<void>
  /** Removes an unlabelled volume. @throws EngineError `FOREIGN_OBJECT` if it holds data or is in use */
  removeUnlabelledVolume(name: string, signal: AbortSignal): Promise<void>

  /** Runs a program in a running container and collects its output. */
  exec(container: string, command: readonly string[], options: ExecOptions): Promise<ExecResult>
  /**
   * Yields standard output as it arrives. It throws at the end if the exit code is not 0; the message has the end of
   * standard error.
   */
  execStream(container: string, command: readonly string[], options: ExecOptions): AsyncIterable<Uint8Array>
  /** Yields lines of standard output and standard error, the oldest first. */
  logs(container: string, options: LogOptions, signal: AbortSignal): AsyncIterable<LogLine>
  /** Reads what a running container uses. */
  stats(container: string, signal: AbortSignal): Promise<ContainerStats>
  /** Returns the bytes on disk of all volumes with Tenantry's label, by name. */
  volumeBytes(owned: Ownership, signal: AbortSignal): Promise<Readonly<Record<string, number>>>
  /** Yields events. It ends or throws with the connection; the caller connects again and reads everything again. */
  events(owned: Ownership, signal: AbortSignal): AsyncIterable<HostEvent>
}
