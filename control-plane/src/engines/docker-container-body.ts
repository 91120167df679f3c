// ContainerSpec → the Engine's request to create it, and with that the hardening of everything that Tenantry runs. Pure.
import type Dockerode from 'dockerode'
import type { HealthCheck, Resources } from '../stacks/index.ts'
import { restartPolicy, type ContainerSpec } from './container-host.ts'
import { toDocker } from './docker-labels.ts'

const nanosecondsPerSecond = 1_000_000_000

/** Of a scratch directory whose options name no size: memory that a tenant could fill is always bounded. */
const scratchSize = 'size=64m'

/**
 * How often the kernel repeats the end of a connection that nobody answers: 4 times take 6 s. While it does, the network
 * of a container that has ended stays, after a crash of the Engine even beside that of its next start, with the same
 * addresses, and takes packets that are for the new one. The kernel's own 8 times take 100 s.
 */
const orphanRetries = '4'

/** The first network only: the Engine takes more than one in this request since API 1.44, and we speak older ones. */
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
 * A container's place on a network, in the Docker Engine's form. Without an address the Engine chooses one of the
 * subnet.
 */
export function endpoint(aliases: readonly string[], address: string | undefined): Dockerode.EndpointSettings {
  return { Aliases: [...aliases], ...(address === undefined ? {} : { IPAMConfig: { IPv4Address: address } }) }
}

/** Swap is none: the limit of both together is that of memory. */
function limits({ memoryBytes, cpuMillis, pids }: Resources): Dockerode.HostConfig {
  return { Memory: memoryBytes, MemorySwap: memoryBytes, NanoCpus: cpuMillis * 1_000_000, PidsLimit: pids }
}

/** What can be changed of a container that is there. */
export function changeable(resources: Resources): Dockerode.HostConfig {
  return { ...limits(resources), RestartPolicy: { Name: restartPolicy } }
}

/** The hardening template. Seccomp and masked paths are the Engine's own, kept by not naming any. */
function hostConfig(spec: ContainerSpec): Dockerode.HostConfig & { CgroupnsMode: 'private' } {
  return {
    ...changeable(spec.resources),
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
    // A name that nobody has is asked of the host's resolvers, which may be out of reach.
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

/** The Engine adds `noexec`, `nosuid` and `nodev` where nothing else is said. */
function scratchOptions(options: string): string {
  const parts = options.split(',').filter((part) => part !== '')
  return (parts.some((part) => part.startsWith('size=')) ? parts : [...parts, scratchSize]).join(',')
}

/** Files of secrets are ours alone; other volumes start with what the image has at their path, its owner above all. */
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
    const slots = (bindings[`${containerPort}/tcp`] ??= [])
    slots.push({ HostIp: hostAddress, HostPort: String(hostPort) })
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
