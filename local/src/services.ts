// The services of the embedded installation: their commands, environments and checks that they respond.
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { internalPaths } from '@tenantry/contract'
import type { PostgresBinaries } from './process/postgres-files.ts'
import { socketUrl } from './process/postgres-socket.ts'
import type { ProcessService } from './process/supervisor.ts'
import { controlDatabase } from './control-database.ts'
import type { DataDirectory } from './data-directory.ts'
import { gatewayName } from './gateway-directories.ts'
import type { PassedSettings } from './passed-settings.ts'
import { postgresService, runtimeConnections, type PostgresServer, type PostgresServers } from './postgres-servers.ts'

export interface Ports {
  control: number
  /** The public port of the gateways, which share it. */
  gateway: number
  /** Ports of the gateways' internal listeners, by their numbers. */
  gatewayInternals: number[]
  /** Ports of the runtimes, by their numbers. */
  runtimes: number[]
  /** Port of the Postgres proxy, which the first gateway has. */
  postgres: number
  /** Ports of tenants' own services, on addresses that each tenant has for itself. */
  tenantPostgres: number
  tenantRuntime: number
}

/** Stop order from the entry point inwards, so that each service can send its last data to the next ones. */
const stopOrder = ['gateway', 'runtime', 'control-plane', 'postgres', 'control-database'] as const

/** Position of the control plane, after which tenants' own services are stopped. */
export const controlPlaneStopOrder = stopOrder.indexOf('control-plane')
type Kind = (typeof stopOrder)[number]

const project = fileURLToPath(new URL('../../', import.meta.url))

export interface ServiceOptions {
  data: DataDirectory
  ports: Ports
  domain: string
  logLevel: string
  /** Whether services restart when their code changes. */
  watch: boolean
  servers: PostgresServers
  passed: PassedSettings
  /** Directories in the passed settings. */
  directories: Record<keyof PassedSettings, string[]>
}

/** The ID of the installation's region. */
export const regionId = 'local'

/** Returns the services of both Postgres servers. */
export function postgresServices(
  { data, servers }: ServiceOptions,
  binaries: PostgresBinaries,
): Record<keyof PostgresServers, ProcessService> {
  const service = (server: PostgresServer) => postgresService(server, binaries, data, stopOrder.indexOf(server.name))
  return { homes: service(servers.homes), controlDatabase: service(servers.controlDatabase) }
}

export function controlPlaneService(options: ServiceOptions): ProcessService {
  const { data, ports } = options
  return nodeService(
    options,
    {
      name: 'control-plane',
      kind: 'control-plane',
      main: 'control-plane/src/main.ts',
      livePort: ports.control,
      directories: options.directories.controlPlane,
    },
    {
      TENANTRY_PORT: String(ports.control),
      TENANTRY_CONTROL_DATABASE_URL: socketUrl(options.servers.controlDatabase, controlDatabase),
      TENANTRY_CONTROL_DATABASE_PASSWORD_FILE: data.secrets.postgresPassword,
      TENANTRY_MASTER_KEY_FILE: data.secrets.masterKey,
      TENANTRY_REGIONS_FILE: join(data.root, 'regions.json'),
      TENANTRY_PLATFORM_KEY_FILE: data.secrets.platformKey,
      // In an installation for trying out, webhooks are sent to the same machine.
      TENANTRY_WEBHOOKS_MAY_REACH: '127.0.0.0/8',
      TENANTRY_BACKUPS: data.backups,
      ...options.passed.controlPlane,
    },
  )
}

/** Returns the services of the runtimes, which share the tenants, the directory and the connections to Postgres. */
export function runtimeServices(options: ServiceOptions): ProcessService[] {
  const { data, ports } = options
  const count = ports.runtimes.length
  return ports.runtimes.map((port, number) =>
    nodeService(
      options,
      {
        name: `runtime-${number}`,
        kind: 'runtime',
        main: 'tenant-runtime/src/main.ts',
        livePort: port,
        directories: options.directories.runtime,
      },
      {
        TENANTRY_PORT: String(port),
        TENANTRY_CONTROL_URL: `http://127.0.0.1:${ports.control}`,
        TENANTRY_DATA: data.runtime,
        TENANTRY_REGION: regionId,
        TENANTRY_RUNTIMES: String(count),
        TENANTRY_RUNTIME_NUMBER: String(number),
        TENANTRY_MAX_CONNECTIONS: String(Math.floor(runtimeConnections(count) / count)),
        ...options.passed.runtime,
      },
    ),
  )
}

/** A gateway, and where it listens. */
interface GatewayListeners {
  /** The gateway's number. The first one, 0, has the Postgres proxy. */
  number: number
  port: number
  internalPort: number
  /** Whether other gateways listen on the same port. */
  isPortShared: boolean
}

/** Returns the services of the gateways, which share the public port. */
export function gatewayServices(options: ServiceOptions): ProcessService[] {
  const { gateway: port, gatewayInternals } = options.ports
  const isPortShared = gatewayInternals.length > 1
  return gatewayInternals.map((internalPort, number) =>
    gatewayService(options, { number, port, internalPort, isPortShared }),
  )
}

/** Returns the service of one gateway. */
export function gatewayService(
  options: ServiceOptions,
  { number, port, internalPort, isPortShared }: GatewayListeners,
): ProcessService {
  const { data, ports, passed } = options
  const { TENANTRY_POSTGRES_PORT = String(ports.postgres), ...settings } = passed.gateway
  const name = gatewayName(number)
  return nodeService(
    options,
    {
      name,
      kind: 'gateway',
      main: 'gateway/src/main.ts',
      livePort: internalPort,
      directories: options.directories.gateway,
    },
    {
      TENANTRY_PORT: String(port),
      ...(isPortShared ? { TENANTRY_SHARED_PORT: '1' } : {}),
      TENANTRY_INTERNAL_PORT: String(internalPort),
      ...(number === 0 ? { TENANTRY_POSTGRES_PORT } : {}),
      TENANTRY_CONTROL_URL: `http://127.0.0.1:${ports.control}`,
      TENANTRY_DATA: join(data.root, name),
      TENANTRY_SOURCE: `gateway-local-${number}`,
      TENANTRY_DOMAIN: options.domain,
      ...settings,
    },
  )
}

interface NodeService {
  name: string
  kind: Kind
  main: string
  /** Port of the service's liveness check. */
  livePort: number
  /** Directories in addition to the project's and the data directory. */
  directories: string[]
}

function nodeService(
  options: ServiceOptions,
  { name, kind, main, livePort, directories }: NodeService,
  environment: Record<string, string>,
): ProcessService {
  return {
    name,
    command: process.execPath,
    args: [
      ...(options.watch ? ['--watch', '--watch-preserve-output'] : []),
      '--enable-source-maps',
      join(project, main),
    ],
    cwd: options.data.root,
    environment: {
      PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
      TZ: 'UTC',
      NODE_ENV: 'production',
      NODE_COMPILE_CACHE: join(options.data.compiled, kind),
      TENANTRY_HOST: '127.0.0.1',
      TENANTRY_LOG_LEVEL: options.logLevel,
      TENANTRY_INTERNAL_TOKEN_FILE: options.data.secrets.internalToken,
      ...environment,
    },
    needs: [project, options.data.root, ...directories],
    ready: async (signal) => {
      const response = await fetch(`http://127.0.0.1:${livePort}${internalPaths.live}`, {
        signal: AbortSignal.any([signal, AbortSignal.timeout(1_000)]),
      })
      await response.body?.cancel()
      return response.status === 200
    },
    stopSignal: 'SIGTERM',
    stopOrder: stopOrder.indexOf(kind),
    stopMilliseconds: 12_000,
  }
}
