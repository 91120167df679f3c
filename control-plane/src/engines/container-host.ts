// What the container engines ask of one host, and nothing more: the real one speaks to a Docker Engine, a simulated one
// stands in its place where faults are rehearsed. Thin on purpose: no decisions are taken behind it.
import type { HealthCheck, Published, Resources } from '../stacks/index.ts'

/** Labels of everything that is ours. What lacks `installation` with our value is foreign and never touched. */
export interface Labels {
  installation: string
  stack: string
  /** Containers, and the volumes of secrets. */
  service?: string
  /** `specHash` of the service that a container was made from. */
  spec?: string
}

/** Whose objects a call may see or touch: those of an installation, and where `stack` is given, of that stack alone. */
export interface Ownership {
  installation: string
  stack?: string
}

/** The host starts anew what ends by itself: of every container of ours, as long as nobody stops it. */
export const restartPolicy = 'unless-stopped'

/** State of a container, in the Docker Engine's words. */
export type ContainerState = 'created' | 'running' | 'paused' | 'restarting' | 'exited' | 'dead' | 'removing'

/** A container as the host tells of it: what could be changed by hand is here, to be compared with what was asked for. */
export interface ObservedContainer {
  id: string
  name: string
  labels: Labels
  state: ContainerState
  /** `none` without a health check or before its first run. */
  health: 'none' | 'starting' | 'healthy' | 'unhealthy'
  exitCode: number
  /** ISO 8601, UTC; undefined before the first start. */
  startedAt: string | undefined
  restarts: number
  outOfMemory: boolean
  /** `sha256:…` */
  imageId: string
  resources: Resources
  /** The host's name of it. */
  restartPolicy: string
  /** Network name → aliases and address. */
  networks: Readonly<Record<string, { aliases: readonly string[]; address: string }>>
}

/** A network of ours as the host reports it. */
export interface ObservedNetwork {
  id: string
  name: string
  labels: Labels
  subnet: string
  internal: boolean
  /** Names of the containers on it, running or not as far as the host tells. */
  members: readonly string[]
}

/** A volume of ours as the host reports it. */
export interface ObservedVolume {
  name: string
  labels: Labels
}

/** What exists on a host of one owner, read at one moment. */
export interface ObservedHost {
  containers: readonly ObservedContainer[]
  networks: readonly ObservedNetwork[]
  volumes: readonly ObservedVolume[]
  /** Names of volumes that are named like ours and have no label: a host creates one for a container whose volume is gone. */
  unlabelledVolumes: readonly string[]
}

/** An image on the host. */
export interface HostImage {
  /** `sha256:…` */
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
  /** Volume name on the host → path inside and whether it may be written. */
  volumes: readonly { volume: string; path: string; readOnly: boolean }[]
  scratch: Readonly<Record<string, string>>
  /** The first is there from the start; further ones are connected before it is started. */
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
}

/** A volume to be created, empty. */
export interface VolumeSpec {
  name: string
  labels: Labels
}

/** What a host is and how much it has, for the operators' view of a region and for limits that must fit it. */
export interface HostInfo {
  name: string
  apiVersion: string
  memoryBytes: number
  cpus: number
  /** Where it keeps images and volumes; undefined where that can't be seen. */
  disk: { freeBytes: number; totalBytes: number } | undefined
  /** What an operator should know, e.g. limits that this kernel does not enforce. */
  warnings: readonly string[]
}

/** Something happened to an object with our label. */
export interface HostEvent {
  stack: string
  /** e.g. `container die`, `network disconnect`. */
  what: string
}

/** One line that a service wrote. */
export interface LogLine {
  /** ISO 8601, UTC, nanoseconds as the host gives them. */
  at: string
  stream: 'stdout' | 'stderr'
  text: string
}

/** Which lines of a log are read; with `follow`, also those that are written later, until the signal aborts. */
export interface LogOptions {
  follow: boolean
  /** Lines from the end. */
  tail: number
  /** ISO 8601. */
  since?: string
}

/** One reading of a container's cgroup. */
export interface ContainerStats {
  /** Total since the container's start. */
  cpuNanoseconds: number
  /** Without the page cache that can be dropped. */
  memoryBytes: number
}

/** How a program runs in a container. `maxOutputBytes` bounds what `exec` collects: 16 MiB if absent. */
export interface ExecOptions {
  /** Written to standard input, which is then closed. */
  input?: string | AsyncIterable<Uint8Array>
  signal: AbortSignal
  /** Bytes of standard output; more is an error. */
  maxOutputBytes?: number
}

/** How a program in a container ended. A code other than 0 is a result, not an error. */
export interface ExecResult {
  code: number
  stdout: string
  stderr: string
}

/**
 * A host of containers. Every call throws `EngineError` (engine-error.ts), or its signal's reason once that is aborted;
 * none retries by itself. All IDs and names are the host's.
 */
export interface ContainerHost {
  /** Reads the host's size and version. */
  info(signal: AbortSignal): Promise<HostInfo>
  /** Everything with our label. */
  observe(owned: Ownership, signal: AbortSignal): Promise<ObservedHost>
  /** Undefined for an image that the host does not have. */
  image(reference: string, signal: AbortSignal): Promise<HostImage | undefined>

  /** @throws EngineError `FOREIGN_OBJECT` when the name is taken by something that is not ours; ours is adopted */
  createNetwork(spec: NetworkSpec, signal: AbortSignal): Promise<void>
  /** An unlabelled volume of that name which holds nothing and is not in use is replaced. */
  createVolume(spec: VolumeSpec, signal: AbortSignal): Promise<void>
  /**
   * Created, not started; with all its networks. A container of ours under that name is adopted as it is.
   * @throws EngineError `VOLUME_MISSING` also when a volume went away meanwhile: the container is not left on what the host made instead
   */
  createContainer(spec: ContainerSpec, signal: AbortSignal): Promise<void>
  /** Starts a created or stopped container. It need not be healthy yet when the call returns. */
  startContainer(name: string, signal: AbortSignal): Promise<void>
  /** Lets the processes of a paused container run on. */
  unpauseContainer(name: string, signal: AbortSignal): Promise<void>
  /** Asks a container to stop and kills it after `seconds`. */
  stopContainer(name: string, seconds: number, signal: AbortSignal): Promise<void>
  /** The restart policy is set with them. */
  updateResources(name: string, resources: Resources, signal: AbortSignal): Promise<void>
  /** Puts a container on a network, at a fixed address or at any of the subnet. */
  connect(
    network: string,
    container: string,
    aliases: readonly string[],
    address: string | undefined,
    signal: AbortSignal,
  ): Promise<void>
  /** Not being on it is no error. */
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
   * Adds files of mode 0400 to a volume of `user`; what it holds besides stays.
   * @throws EngineError `VOLUME_MISSING` for a volume that is gone, also where the host made another in its place
   */
  addFiles: ContainerHost['writeFiles']

  /** What is absent is no error, what is not ours is. */
  removeContainer(name: string, owner: Ownership, signal: AbortSignal): Promise<void>
  /** Guests are disconnected first. */
  removeNetwork(name: string, owner: Ownership, signal: AbortSignal): Promise<void>
  /** Removes a volume and what it holds. What is absent is no error, what is not ours is. */
  removeVolume(name: string, owner: Ownership, signal: AbortSignal): Promise<void>
  /** Removes an unlabelled volume. @throws EngineError `FOREIGN_OBJECT` when it holds something or is in use */
  removeUnlabelledVolume(name: string, signal: AbortSignal): Promise<void>

  /** Runs a program in a running container and collects its output. */
  exec(container: string, command: readonly string[], options: ExecOptions): Promise<ExecResult>
  /** Standard output as it comes; throws at its end when the exit code is not 0 (the message carries the end of standard error). */
  execStream(container: string, command: readonly string[], options: ExecOptions): AsyncIterable<Uint8Array>
  /** Yields lines of standard output and standard error, the oldest first. */
  logs(container: string, options: LogOptions, signal: AbortSignal): AsyncIterable<LogLine>
  /** Reads what a running container uses. */
  stats(container: string, signal: AbortSignal): Promise<ContainerStats>
  /** Bytes that a volume holds on disk, of all with our label. */
  volumeBytes(owned: Ownership, signal: AbortSignal): Promise<Readonly<Record<string, number>>>
  /** Ends or throws when the connection does; the caller connects again and looks at everything anew. */
  events(owned: Ownership, signal: AbortSignal): AsyncIterable<HostEvent>
}
