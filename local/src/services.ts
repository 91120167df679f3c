// The services of the embedded installation: their commands, environments and checks that they respond.
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { internalPaths } from '@tenantry/contract'
import pg from 'pg'
import { postgresArguments, removeStaleLock, type PostgresBinaries } from './process/postgres-files.ts'
import type { ProcessService } from './process/supervisor.ts'
import type { DataDirectory } from './data-directory.ts'
import type { PassedSettings } from './passed-settings.ts'

export interface Ports {
  control: number
  gateway: number
  gatewayInternal: number
  runtime: number
  postgres: number
}

/** Maximum number of connections of Postgres. The runtime's limit leaves connections for the control plane. */
const maxConnections = 200
const runtimeConnections = 100
/** Connections that are reserved for runtime, reloads and the control plane, which also has a superuser's. */
const reservedConnections = 130

/** Stop order from the entry point inwards, so that each service can send its last data to the next ones. */
const stopOrder = ['gateway', 'runtime', 'control-plane', 'postgres']

const project = fileURLToPath(new URL('../../', import.meta.url))

export interface ServiceOptions {
  data: DataDirectory
  ports: Ports
  domain: string
  logLevel: string
  /** Whether services restart when their code changes. */
  watch: boolean
  postgresPassword: string
  passed: PassedSettings
  /** Directories in the passed settings. */
  directories: Record<keyof PassedSettings, string[]>
}

export function postgresUrl(
  { ports, postgresPassword }: Pick<ServiceOptions, 'ports' | 'postgresPassword'>,
  database: string,
): string {
  return `postgresql://postgres:${postgresPassword}@127.0.0.1:${ports.postgres}/${database}`
}

export function postgresService(options: ServiceOptions, binaries: PostgresBinaries): ProcessService {
  const { data, ports } = options
  return {
    name: 'postgres',
    command: binaries.postgres,
    args: postgresArguments(data.postgres, ports.postgres, {
      max_connections: String(maxConnections),
      // Tenants' own logins use the remaining connections.
      reserved_connections: String(reservedConnections),
      temp_file_limit: '1GB',
    }),
    cwd: data.root,
    environment: { PATH: '/usr/bin:/bin', LANG: 'C.UTF-8', TZ: 'UTC' },
    needs: [binaries.root, data.root],
    ready: () => acceptsQueries(postgresUrl(options, 'postgres')),
    // Fast shutdown: it ends sessions and preserves committed data.
    stopSignal: 'SIGINT',
    stopOrder: stopOrder.indexOf('postgres'),
    stopMilliseconds: 15_000,
    prepare: () => removeStaleLock(data.postgres),
  }
}

export function controlPlaneService(options: ServiceOptions): ProcessService {
  const { data, ports } = options
  return nodeService(
    options,
    {
      name: 'control-plane',
      main: 'control-plane/src/main.ts',
      livePort: ports.control,
      directories: options.directories.controlPlane,
    },
    {
      TENANTRY_PORT: String(ports.control),
      TENANTRY_CONTROL_DATABASE_URL: postgresUrl(options, 'tenantry_control'),
      TENANTRY_MASTER_KEY_FILE: data.secrets.masterKey,
      TENANTRY_REGIONS_FILE: join(data.root, 'regions.json'),
      TENANTRY_PLATFORM_KEY_FILE: data.secrets.platformKey,
      // In an installation for trying out, webhooks are sent to the same machine.
      TENANTRY_WEBHOOKS_MAY_REACH: '127.0.0.0/8',
      ...options.passed.controlPlane,
    },
  )
}

export function runtimeService(options: ServiceOptions): ProcessService {
  const { data, ports } = options
  return nodeService(
    options,
    {
      name: 'runtime',
      main: 'tenant-runtime/src/main.ts',
      livePort: ports.runtime,
      directories: options.directories.runtime,
    },
    {
      TENANTRY_PORT: String(ports.runtime),
      TENANTRY_CONTROL_URL: `http://127.0.0.1:${ports.control}`,
      TENANTRY_DATA: data.runtime,
      TENANTRY_MAX_CONNECTIONS: String(runtimeConnections),
      ...options.passed.runtime,
    },
  )
}

export function gatewayService(options: ServiceOptions): ProcessService {
  const { data, ports } = options
  return nodeService(
    options,
    {
      name: 'gateway',
      main: 'gateway/src/main.ts',
      livePort: ports.gatewayInternal,
      directories: options.directories.gateway,
    },
    {
      TENANTRY_PORT: String(ports.gateway),
      TENANTRY_INTERNAL_PORT: String(ports.gatewayInternal),
      TENANTRY_CONTROL_URL: `http://127.0.0.1:${ports.control}`,
      TENANTRY_DATA: data.gateway,
      TENANTRY_DOMAIN: options.domain,
      ...options.passed.gateway,
    },
  )
}

interface NodeService {
  name: string
  main: string
  /** Port of the service's liveness check. */
  livePort: number
  /** Directories in addition to the project's and the data directory. */
  directories: string[]
}

function nodeService(
  options: ServiceOptions,
  { name, main, livePort, directories }: NodeService,
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
    stopOrder: stopOrder.indexOf(name),
    stopMilliseconds: 12_000,
  }
}

async function acceptsQueries(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 1_000 })
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.query('select 1')
    return true
  } catch {
    return false
  } finally {
    client.end().catch(() => undefined)
  }
}
