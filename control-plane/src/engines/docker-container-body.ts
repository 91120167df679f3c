// Converts a ContainerSpec to the Engine's request to create it, with the hardening of every container of Tenantry. Pure.
import type Dockerode from 'dockerode'
import type { HealthCheck } from '../stacks/index.ts'
import { restartPolicy, type ContainerSpec, type LimitChanges } from './container-host.ts'
import { toDocker } from './docker-labels.ts'

const nanosecondsPerSecond = 1_000_000_000

/** Size of a scratch directory whose options name none, so that the memory that a tenant can fill is always bounded. */
const scratchSize = 'size=64m'

/**
 * Number of times that the kernel repeats the end of a connection without a reply: 4 times take 6 s. Until then the
 * network of an ended container stays. After a crash of the Engine it stays alongside the network of the next start,
 * with the same addresses, and receives packets that are for the new one. The kernel's default of 8 times takes 100 s.
 */
const orphanRetries = '4'

/**
 * Returns the request's body, with the first network only: the Engine accepts several since API 1.44, and older ones
 * are supported.
 */
export function containerBody(spec: ContainerSpec): Dockerode.ContainerCreateOptions {
  const [first] = spec.networks
  return {
    Image: spec.image,
    Cmd: [...spec.command],
    Env: Object.entries(spec.environment).map(([name, value]) => `${name}=${value}`),
    User: spec.user,
    Labels: toDocker(spec.labels),
    AttachStdin: false,
    AttachStdout: false,
    AttachStderr: false,
    OpenStdin: false,
    Tty: false,
    StopTimeout: spec.stopSeconds,
    Healthcheck: healthcheck(spec.health),
    ExposedPorts: Object.fromEntries(spec.published.map(({ containerPort }) => [`${containerPort}/tcp`, {}])),
    HostConfig: hostConfig(spec),
    ...(first === undefined
      ? {}
      : { NetworkingConfig: { EndpointsConfig: { [first.network]: endpoint(first.aliases, first.address) } } }),
  }
}

/**
 * Returns a container's attachment to a network in the Docker Engine's form. Without an address the Engine chooses one
 * of the subnet.
 */
export function endpoint(aliases: readonly string[], address: string | undefined): Dockerode.EndpointSettings {
  return { Aliases: [...aliases], ...(address === undefined ? {} : { IPAMConfig: { IPv4Address: address } }) }
}

/**
 * Returns the settings to change on an existing container. Memory has no swap: the limit of memory and swap together
 * equals that of memory.
 */
export function changeable({
  memoryBytes,
  cpuMillis,
  pids,
  restartPolicy: policy,
}: LimitChanges): Dockerode.HostConfig {
  return {
    ...(memoryBytes === undefined ? {} : { Memory: memoryBytes, MemorySwap: memoryBytes }),
    ...(cpuMillis === undefined ? {} : { NanoCpus: cpuMillis * 1_000_000 }),
    ...(pids === undefined ? {} : { PidsLimit: pids }),
    ...(policy === undefined ? {} : { RestartPolicy: { Name: policy } }),
  }
}

/** Returns the hardening template. It names no seccomp profile and no masked paths, so the Engine's defaults apply. */
function hostConfig(spec: ContainerSpec): Dockerode.HostConfig & { CgroupnsMode: 'private' } {
  return {
    ...changeable({ ...spec.resources, restartPolicy }),
    Privileged: false,
    CapDrop: ['ALL'],
    CapAdd: [],
    SecurityOpt: ['no-new-privileges:true'],
    ReadonlyRootfs: true,
    Tmpfs: Object.fromEntries(Object.entries(spec.scratch).map(([path, options]) => [path, scratchOptions(options)])),
    Mounts: spec.volumes.map(mount),
    NetworkMode: spec.networks[0]?.network ?? 'none',
    PortBindings: portBindings(spec),
    PublishAllPorts: false,
    IpcMode: 'private',
    CgroupnsMode: 'private',
    PidMode: '',
    UTSMode: '',
    Devices: [],
    // The host's resolvers receive queries for unknown names and may be unreachable.
    DnsOptions: ['timeout:1', 'attempts:2'],
    OomKillDisable: false,
    Init: false,
    Sysctls: { 'net.ipv4.ip_forward': '0', 'net.ipv4.tcp_orphan_retries': orphanRetries },
    Ulimits: [
      { Name: 'nofile', Soft: 16_384, Hard: 16_384 },
      { Name: 'core', Soft: 0, Hard: 0 },
    ],
    LogConfig: { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '3' } },
  }
}

/** Adds a size to the options. The Engine itself adds `noexec`, `nosuid` and `nodev` unless the options differ. */
function scratchOptions(options: string): string {
  const parts = options.split(',').filter((part) => part !== '')
  return (parts.some((part) => part.startsWith('size=')) ? parts : [...parts, scratchSize]).join(',')
}

/**
 * Volumes of secrets hold only their files; other volumes start with the image's content at their path, its owner
 * included.
 */
function mount({ volume, path, readOnly }: ContainerSpec['volumes'][number]): Dockerode.MountSettings {
  return {
    Type: 'volume',
    Source: volume,
    Target: path,
    ReadOnly: readOnly,
    ...(readOnly ? { VolumeOptions: { NoCopy: true, Labels: {}, DriverConfig: { Name: 'local', Options: {} } } } : {}),
  }
}

function portBindings({ published }: ContainerSpec): Record<string, { HostIp: string; HostPort: string }[]> {
  const bindings: Record<string, { HostIp: string; HostPort: string }[]> = {}
  for (const { containerPort, hostAddress, hostPort } of published) {
    const hostPorts = (bindings[`${containerPort}/tcp`] ??= [])
    hostPorts.push({ HostIp: hostAddress, HostPort: String(hostPort) })
  }
  return bindings
}

function healthcheck({
  command,
  intervalSeconds,
  timeoutSeconds,
  retries,
  startSeconds,
}: HealthCheck): Dockerode.HealthConfig {
  return {
    Test: ['CMD', ...command],
    Interval: intervalSeconds * nanosecondsPerSecond,
    Timeout: timeoutSeconds * nanosecondsPerSecond,
    Retries: retries,
    StartPeriod: startSeconds * nanosecondsPerSecond,
  }
}
