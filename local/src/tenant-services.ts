// The services of tenants with a database of their own: the host that runs them, and its settings for the control plane.
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { ProcessSettings } from '../../control-plane/src/stacks/index.ts'
import { HostPaths } from './containers/host-paths.ts'
import { serveHost } from './containers/host-server.ts'
import { openProcessHost } from './containers/process-host.ts'
import type { DataDirectory } from './data-directory.ts'
import type { PostgresBinaries } from './process/postgres-files.ts'
import { maxSocketBytes, socketFile } from './process/postgres-socket.ts'
import { RunRecords } from './process/run-records.ts'
import type { Identity } from './process/unprivileged.ts'
import type { Ports } from './services.ts'

/** The host of an installation. */
interface TenantServices {
  /** The settings with which the control plane uses the host. */
  settings: ProcessSettings
  /** Stops all services of tenants. They start again with the installation. */
  close(expedite: AbortSignal): Promise<void>
}

interface TenantServicesOptions {
  data: DataDirectory
  binaries: PostgresBinaries
  identity: Identity | undefined
  ports: Ports
  /** URL of the internal listener of the gateway that relays to these services. */
  gatewayUrl: string
  logLevel: string
  /** The operator's settings of the runtimes. */
  runtimeSettings: Readonly<Record<string, string>>
  log: Logger
}

/** A fourth of the loopback addresses. They have room for 262,128 tenants. */
const addressRange = '127.64.0.0/10'
const highestPort = 65_535
const highestUser = 999_999

/**
 * Opens the host and starts the services that ran before. Undefined if the path of the data directory is too long for the
 * sockets of tenants' Postgres servers.
 */
export async function openTenantServices(options: TenantServicesOptions): Promise<TenantServices | undefined> {
  const { data, binaries, identity, ports, gatewayUrl, logLevel, runtimeSettings, log } = options
  const paths = new HostPaths(data.root)
  if (Buffer.byteLength(socketFile(paths.sockets(highestUser), highestPort)) > maxSocketBytes) {
    log.warn(
      'The path of the data directory is too long for tenants with a database of their own. None can be created.',
    )
    return undefined
  }
  const host = await openProcessHost({
    paths,
    binaries,
    identity,
    runs: new RunRecords(data.run),
    programs: {
      postgresRoot: binaries.root,
      ports: { postgres: ports.tenantPostgres, runtime: ports.tenantRuntime },
      gatewayUrl,
      logLevel,
      runtimeSettings: withoutStorage(runtimeSettings),
    },
  })
  const socket = join(data.sockets, 'host')
  const stopServing = await serveHost(host, socket, identity, log).catch(async (error: unknown) => {
    await host.close().catch(() => undefined)
    throw error
  })
  return {
    settings: {
      socket,
      address_range: addressRange,
      postgres_port: ports.tenantPostgres,
      runtime_port: ports.tenantRuntime,
    },
    async close(expedite) {
      await stopServing()
      await host.close(expedite)
    },
  }
}

/** Returns the settings without those of the shared runtimes' storage, whose credentials open the files of all tenants. */
function withoutStorage(settings: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(settings).filter(([name]) => !/^TENANTRY_(?:S3|STORAGE)_/.test(name)))
}
