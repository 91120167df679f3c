// The services of a tenant with its own database, and functions that they share with a region's services. Pure.
import { movableSettings } from './shared-server-settings.ts'
import type { SecretText } from './secret-text.ts'
import type { Attachment, HealthCheck, Resources, Service } from './stack.ts'

/** Numeric users of the images (images/). */
const nodeUser = '10001:10001'
export const postgresUser = '10002:10002'

/** Ports inside of containers, the same in every stack. */
export const ports = {
  runtime: 24_401,
  gateway: 4401,
  gatewayInternal: 4402,
  postgresProxy: 4403,
  egress: 4404,
  storageRelay: 4405,
  postgres: 5432,
  /** Port of a cluster's routers that leads to the replicas. */
  postgresReplicas: 5433,
} as const

/** Maximum wait of a request for the next primary of a cluster. One that is lost is replaced within 22 s. */
export const failoverSeconds = 25

const megabyte = 2 ** 20

interface PostgresOptions {
  image: string
  network: Attachment
  resources: Resources
  /** Maximum number of sessions, of which some are reserved for the runtime and the control plane. */
  connections: number
  reservedConnections: number
  /** Further settings, of a server that tenants share. */
  settings?: Readonly<Record<string, string | number>>
  secrets?: Readonly<Record<string, SecretText>>
  /** Name of the volume of the data; absent: `data`. */
  volume?: string
  /** Number of requested restarts. */
  restarts: number
}

/**
 * Returns the Postgres of a region, or of a tenant with its own database. `connections` sets `max_connections`;
 * `reservedConnections` of them are not available to tenants' logins.
 */
export function postgresService({
  image,
  network,
  resources,
  connections,
  reservedConnections,
  settings: further = {},
  secrets = {},
  volume = 'data',
  restarts,
}: PostgresOptions): Service {
  const buffers = Math.max(16, Math.floor(resources.memoryBytes / megabyte / 8))
  const settings = {
    max_connections: connections,
    reserved_connections: reservedConnections,
    ...movableSettings,
    ...further,
    shared_buffers: `${buffers}MB`,
    max_wal_size: '512MB',
    min_wal_size: '80MB',
    temp_file_limit: '1GB',
    // Each worker may use as much memory as its leader, and /dev/shm is small.
    max_parallel_workers_per_gather: 0,
    // Until the timeout, a client that does not log in occupies a connection slot.
    authentication_timeout: '10s',
  }
  return {
    name: 'postgres',
    image,
    command: Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    environment: { TENANTRY_RESTARTS: String(restarts) },
    secrets,
    volumes: { [volume]: '/var/lib/postgresql' },
    scratch: { '/tmp': 'size=64m,mode=1777', '/run/postgresql': 'size=1m,mode=0700,uid=10002,gid=10002' },
    networks: [network],
    published: [],
    isAttached: false,
    // After a crash it replays its log first, and must not be killed for that.
    health: check(['pg_isready', '--quiet', '--host=/run/postgresql', '--username=postgres'], 3_600),
    resources,
    user: postgresUser,
    stopSeconds: 30,
    replace: 'stop-first',
  }
}

interface NodeServiceOptions {
  name: string
  image: string
  livePort: number
  networks: readonly Attachment[]
  resources: Resources
  environment: Readonly<Record<string, string>>
  internalToken: SecretText
  /** Further secrets, by file name. */
  secrets?: Readonly<Record<string, SecretText>>
  volume: string
  replace: Service['replace']
  restarts: number
  published?: Service['published']
  isAttached?: boolean
}

/** Returns the service of a runtime or a gateway. */
export function nodeService({
  name,
  image,
  livePort,
  networks,
  resources,
  environment,
  internalToken,
  secrets = {},
  volume,
  replace,
  restarts,
  published = [],
  isAttached = false,
}: NodeServiceOptions): Service {
  return {
    name,
    image,
    command: [],
    environment: {
      TENANTRY_HOST: '0.0.0.0',
      TENANTRY_DATA: '/var/lib/tenantry',
      TENANTRY_INTERNAL_TOKEN_FILE: '/run/secrets/internal-token',
      TENANTRY_RESTARTS: String(restarts),
      ...environment,
    },
    secrets: { 'internal-token': internalToken, ...secrets },
    volumes: { [volume]: '/var/lib/tenantry' },
    scratch: { '/tmp': 'size=64m,mode=1777' },
    networks,
    published,
    isAttached,
    health: check(['/usr/local/bin/is-live', String(livePort)]),
    resources,
    user: nodeUser,
    stopSeconds: 15,
    replace,
  }
}

/**
 * Returns a health check. Its interval is long, because each check is a process in a container and takes a tenth of a
 * second of the host's time.
 */
function check(command: readonly string[], startSeconds = 20): HealthCheck {
  return { command, intervalSeconds: 60, timeoutSeconds: 10, retries: 2, startSeconds }
}
