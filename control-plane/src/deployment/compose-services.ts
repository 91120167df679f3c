// The services of a host's Compose file, with the files that each one gets. Pure.
import type { Service } from '../stacks/index.ts'
import type { DatabaseService } from './control-database.ts'
import { dockerProxyAddress } from './platform-networks.ts'
import type { PlatformHost, PlatformOptions } from './platform-options.ts'
import { readSettings } from './settings-file.ts'
import type { Yaml } from './to-yaml.ts'

/** A container of the platform on one host. */
export interface ComposeService {
  name: string
  /** User that owns its files, and runs it. */
  user: number
  /** Texts of the files in its directories, by path below the directory and inside of the container. */
  directories: readonly ServiceDirectory[]
  /** Its part of the Compose file, without what all have in common. */
  definition: Readonly<Record<string, Yaml | undefined>>
}

/** Files that a container gets as one directory. */
export interface ServiceDirectory {
  /** Path inside of the container. */
  target: string
  /** Texts by their paths. */
  files: Readonly<Record<string, string>>
}

const secretsDirectory = '/run/secrets'
const users = { node: 10_001, postgres: 10_002, caddy: 10_003, etcd: 10_004 } as const
const dockerProxyPort = 2376
const dockerProxySocket = '/tmp/docker-proxy.sock'
const engineSocket = '/run/docker.sock'
const image = (name: string) => `tenantry/${name}:latest`

/** Parts of the Compose file that all services have in common. */
export const hardened: Readonly<Record<string, Yaml>> = {
  restart: 'always',
  read_only: true,
  cap_drop: ['ALL'],
  security_opt: ['no-new-privileges:true'],
  sysctls: { 'net.ipv4.ip_forward': '0', 'net.ipv4.tcp_orphan_retries': '4' },
  logging: { driver: 'json-file', options: { 'max-size': '10m', 'max-file': '3' } },
}

/** The address of a host's engine in the file of regions, for the control planes. */
export function engineAddress(options: PlatformOptions, host: PlatformHost): { host: string; tls_directory: string } {
  return {
    host: `tcp://${dockerProxyAddress(options, host)}:${dockerProxyPort}`,
    tls_directory: `${secretsDirectory}/docker-proxy`,
  }
}

function limits(megabytes: number, cpus: number, pids: number): Record<string, Yaml> {
  return { mem_limit: `${megabytes}m`, cpus, pids_limit: pids }
}

function mounted(source: string, target: string, isReadOnly = true): Yaml {
  return { type: 'bind', source, target, read_only: isReadOnly }
}

function engineMount({ dockerSocket }: PlatformHost): Yaml {
  return mounted(dockerSocket, engineSocket, false)
}

const nodeProgram = { image: image('control-plane'), user: `${users.node}:${users.node}` }
const nodeScratch = ['/tmp:size=16m,mode=1777']

/** Checks that the proxy or the watchdog reaches the engine at a socket. */
function reaches(socket: string): Yaml {
  return {
    test: ['CMD', '/usr/local/bin/node', '/app/docker-proxy/src/is-live.ts', socket],
    interval: '30s',
    timeout: '10s',
    retries: 3,
    start_period: '20s',
  }
}

/** Returns the host's Docker proxy. */
export function dockerProxyService(
  options: PlatformOptions,
  host: PlatformHost,
  installation: string,
  tls: Readonly<Record<string, string>>,
): ComposeService {
  const { name, ports, networkRange } = options
  const images = ['postgres', 'tenant-runtime', 'gateway', 'cluster-member', 'etcd'].map((one) => `tenantry/${one}`)
  return {
    name: 'docker-proxy',
    user: users.node,
    directories: [{ target: '/run/docker-proxy', files: tls }],
    definition: {
      ...nodeProgram,
      command: ['/app/docker-proxy/src/main.ts'],
      group_add: [host.dockerGroup],
      networks: { engines: { ipv4_address: dockerProxyAddress(options, host) } },
      environment: {
        TENANTRY_DOCKER_PROXY_SOCKET: dockerProxySocket,
        TENANTRY_DOCKER_PROXY_PORT: String(dockerProxyPort),
        TENANTRY_DOCKER_PROXY_TLS: '/run/docker-proxy',
        TENANTRY_DOCKER_SOCKET: engineSocket,
        TENANTRY_COMPOSE_PROJECT: name,
        TENANTRY_INSTALLATION: installation,
        TENANTRY_NETWORK_RANGE: networkRange,
        TENANTRY_DOCKER_PROXY_IMAGES: images.join(','),
        TENANTRY_DOCKER_PROXY_ATTACHED: [controlContainer(options), proxyContainer(options)].join(','),
        TENANTRY_DOCKER_PROXY_PUBLISHED: [ports.gateway, ports.postgres]
          .map((port) => `${host.address}:${port}`)
          .join(','),
      },
      volumes: [engineMount(host)],
      tmpfs: nodeScratch,
      healthcheck: reaches(dockerProxySocket),
      ...limits(256, 1, 64),
    },
  }
}

/** Returns the host's watchdog. */
export function watchdogService({ name }: PlatformOptions, host: PlatformHost): ComposeService {
  return {
    name: 'watchdog',
    user: users.node,
    directories: [],
    definition: {
      ...nodeProgram,
      command: ['/app/docker-proxy/src/watchdog-main.ts'],
      group_add: [host.dockerGroup],
      network_mode: 'none',
      environment: { TENANTRY_DOCKER_SOCKET: engineSocket, TENANTRY_COMPOSE_PROJECT: name },
      volumes: [engineMount(host)],
      tmpfs: nodeScratch,
      healthcheck: reaches(engineSocket),
      ...limits(256, 1, 64),
    },
  }
}

/** Returns the name of the containers of the control planes. */
export function controlContainer({ name }: Pick<PlatformOptions, 'name'>): string {
  return `${name}-control-plane`
}

/** Returns the name of the containers of Caddy. */
export function proxyContainer({ name }: Pick<PlatformOptions, 'name'>): string {
  return `${name}-caddy`
}

/** Files of a control plane. */
interface ControlPlaneFiles {
  secrets: Readonly<Record<string, string>>
  /** The operator's settings, `NAME=value` in each line. */
  settings: string
  prices: Readonly<Record<string, string>>
  targets: Readonly<Record<string, string>>
}

/** Returns a control plane. */
export function controlPlaneService(
  options: PlatformOptions,
  host: PlatformHost,
  installation: string,
  { secrets, settings, prices, targets }: ControlPlaneFiles,
): ComposeService {
  const { controlAddress = host.address, ports, hasControlDatabase } = options
  const database = hasControlDatabase ? { database: {} } : {}
  const own = {
    TENANTRY_CONTROL_DATABASE_URL_FILE: `${secretsDirectory}/control-database-url`,
    TENANTRY_MASTER_KEY_FILE: `${secretsDirectory}/master-key`,
    TENANTRY_INTERNAL_TOKEN_FILE: `${secretsDirectory}/internal-token`,
    TENANTRY_REGIONS_FILE: `${secretsDirectory}/regions.json`,
    TENANTRY_PLATFORM_KEY_FILE: '/var/lib/tenantry/platform-key',
    TENANTRY_INSTALLATION: installation,
  }
  return {
    name: 'control-plane',
    user: users.node,
    directories: [
      { target: secretsDirectory, files: secrets },
      { target: '/etc/tenantry/prices', files: prices },
      { target: '/etc/tenantry/targets', files: targets },
    ],
    definition: {
      ...nodeProgram,
      networks: { engines: {}, ...database, operators: {} },
      ports: [`${controlAddress}:${ports.control}:4400`],
      environment: { ...readSettings(settings, Object.keys(own)), ...own },
      volumes: ['control:/var/lib/tenantry'],
      tmpfs: ['/tmp:size=64m,mode=1777'],
      stop_grace_period: '30s',
      ...limits(1_024, 2, 256),
    },
  }
}

/** Returns Caddy. @param certificates `certificate.pem` and `key.pem` */
export function caddyService(
  { publicAddress, ports, hasCertificate }: PlatformOptions,
  caddyfile: string,
  certificates: Readonly<Record<string, string>>,
): ComposeService {
  return {
    name: 'caddy',
    user: users.caddy,
    directories: [
      { target: '/etc/caddy', files: { Caddyfile: caddyfile } },
      { target: secretsDirectory, files: certificates },
    ],
    definition: {
      image: image('caddy'),
      user: `${users.caddy}:${users.caddy}`,
      networks: { edge: {} },
      ports: [`${publicAddress}:${ports.http}:8080`, `${publicAddress}:${ports.https}:8443`],
      environment: {
        TENANTRY_TLS: hasCertificate ? 'files' : 'authority',
        TENANTRY_HTTPS_SUFFIX: ports.https === 443 ? '' : `:${ports.https}`,
      },
      volumes: ['caddy:/var/lib/caddy'],
      tmpfs: ['/tmp:size=16m,mode=1777'],
      ...limits(512, 2, 256),
    },
  }
}

/** Returns a container of the control database. */
export function databaseComposeService(service: DatabaseService): ComposeService {
  const { name, entrypoint, command, health, resources, stopSeconds } = service
  const [attachment] = service.networks
  const user = name.startsWith('etcd') ? users.etcd : users.postgres
  const secrets = Object.entries(service.secrets).map(([file, secret]) => [file, secret.reveal()] as const)
  return {
    name,
    user,
    directories: secrets.length === 0 ? [] : [{ target: secretsDirectory, files: Object.fromEntries(secrets) }],
    definition: {
      image: service.image,
      user: service.user,
      ...(entrypoint === undefined ? {} : { entrypoint }),
      ...(command.length === 0 ? {} : { command }),
      networks: {
        database: {
          aliases: attachment?.aliases ?? [],
          ...(attachment?.address === undefined ? {} : { ipv4_address: attachment.address }),
        },
      },
      environment: service.environment,
      volumes: Object.entries(service.volumes).map(([volume, path]) => `${volume}:${path}`),
      tmpfs: scratchOf(service),
      healthcheck: {
        test: ['CMD', ...health.command],
        interval: `${health.intervalSeconds}s`,
        timeout: `${health.timeoutSeconds}s`,
        retries: health.retries,
        start_period: `${health.startSeconds}s`,
      },
      stop_grace_period: `${stopSeconds}s`,
      ...limits(resources.memoryBytes / 2 ** 20, resources.cpuMillis / 1_000, resources.pids),
    },
  }
}

function scratchOf({ scratch }: Service): string[] {
  return Object.entries(scratch).map(([path, options]) => `${path}:${options}`)
}
