// The two Postgres servers of an installation: one with the tenants' homes, and a small one with the control database, so
// that nothing that a tenant's SQL does affects the control plane. Neither listens on a TCP port: clients of tenants
// connect to the gateway's Postgres proxy, and only the services can reach the sockets.
import { join } from 'node:path'
import { userInfo } from 'node:os'
import pg from 'pg'
import { connected } from '../../control-plane/src/platform/single-connection.ts'
import { readPasswordFile, SuperuserUrl } from '../../control-plane/src/platform/superuser-url.ts'
import { sharedServerSettings } from '../../control-plane/src/stacks/index.ts'
import { writeAtomically, type DataDirectory } from './data-directory.ts'
import { postgresArguments, removeRemains, type PostgresBinaries } from './process/postgres-files.ts'
import { socketFile, socketPorts, socketUrl, type SocketServer } from './process/postgres-socket.ts'
import type { ProcessService } from './process/supervisor.ts'
import { serviceUser, type Identity } from './process/unprivileged.ts'

/** One of the servers, with its settings. */
export interface PostgresServer extends SocketServer {
  name: 'postgres' | 'control-database'
  /** The data directory of Postgres. */
  directory: string
  settings: Readonly<Record<string, string>>
  /** The superuser's URL of the server's database `postgres`. Its password is replaced while the installation runs. */
  superuser: SuperuserUrl
}

export type PostgresServers = Record<keyof typeof socketPorts, PostgresServer>

/** Connections of the homes' server for reloads and the control plane, which also has a superuser's. */
const otherServiceConnections = 30
/** Connections of the homes' server for tenants' own logins and the superuser. */
const unreservedConnections = 70
const allRuntimesConnections = 100
const minRuntimeConnections = 25

/** Returns the maximum number of connections of all runtimes together. Each may have an equal part of them. */
export function runtimeConnections(runtimes: number): number {
  return Math.max(allRuntimesConnections, minRuntimeConnections * runtimes)
}

/**
 * Returns both servers.
 * @param password the wanted one of the superuser, the same for both
 * @param runtimes number of runtimes, which connect to the homes' server
 */
export function postgresServers(data: DataDirectory, password: string, runtimes: number): PostgresServers {
  const server = { sockets: data.sockets, password }
  const superuser = (port: number) =>
    new SuperuserUrl(socketUrl({ ...server, port }, 'postgres'), () =>
      readPasswordFile(data.secrets.postgresPassword, 'secrets/postgres-password'),
    )
  const reservedConnections = runtimeConnections(runtimes) + otherServiceConnections
  return {
    homes: {
      ...server,
      name: 'postgres',
      directory: data.postgres,
      port: socketPorts.homes,
      superuser: superuser(socketPorts.homes),
      settings: {
        max_connections: String(reservedConnections + unreservedConnections),
        // Tenants' own logins use the remaining connections.
        reserved_connections: String(reservedConnections),
        temp_file_limit: '1GB',
        ...sharedServerSettings,
      },
    },
    controlDatabase: {
      ...server,
      name: 'control-database',
      directory: data.controlDatabase,
      port: socketPorts.controlDatabase,
      superuser: superuser(socketPorts.controlDatabase),
      settings: { max_connections: '60', shared_buffers: '32MB', max_wal_size: '256MB' },
    },
  }
}

/**
 * Variables with which the kernel kills a backend of the homes' server first when memory runs out, rather than another
 * service or the server's main process. Postgres applies them to its child processes, and restarts after the kill.
 */
const killedFirst = { PG_OOM_ADJUST_FILE: '/proc/self/oom_score_adj', PG_OOM_ADJUST_VALUE: '300' }

/**
 * Time limit of a stop. Thousands of homes are hundreds of thousands of files, all of which may have to be written. A server
 * that is killed before needs longer: it repeats its log at the next start.
 */
const postgresStopMilliseconds = 600_000

/** SQLSTATE of a server that starts, recovers or stops. */
const cannotConnectNow = '57P03'

/** Returns the service of a server. */
export function postgresService(
  server: PostgresServer,
  binaries: PostgresBinaries,
  data: DataDirectory,
  stopOrder: number,
): ProcessService {
  const { name, directory, sockets, port } = server
  return {
    name,
    command: binaries.postgres,
    args: postgresArguments(directory, port, {
      listen_addresses: '',
      unix_socket_directories: sockets,
      unix_socket_permissions: '0700',
      ...server.settings,
    }),
    cwd: data.root,
    environment: { PATH: '/usr/bin:/bin', LANG: 'C.UTF-8', TZ: 'UTC', ...(name === 'postgres' ? killedFirst : {}) },
    needs: [binaries.root, data.root],
    ready: () => readiness(server.superuser),
    // Fast shutdown: it ends sessions and preserves committed data.
    stopSignal: 'SIGINT',
    stopOrder,
    stopMilliseconds: postgresStopMilliseconds,
    prepare: () => removeRemains(directory, socketFile(sockets, port)),
  }
}

/**
 * Users who may log in, and how. The runtime's logins and those of schema reloads need no password: Postgres checks that
 * the process belongs to the services' user. So a tenant that changes the password of such a login, which its code may do
 * in a session of that login, gains nothing and breaks nothing. All others need their password.
 */
const hostBasedAccess = `# npm start writes this file at each start.
local all "/^t_[0-9a-f]{20}(_ddl)?$" peer map=services
local all all scram-sha-256
`

/** Writes the files that decide who may log in to a server. */
export async function writeAccessFiles(server: PostgresServer, identity: Identity | undefined): Promise<void> {
  const user = identity === undefined ? userInfo().username : serviceUser
  const map = `# npm start writes this file at each start.\nservices "${user}" all\n`
  await Promise.all([
    writeAtomically(join(server.directory, 'pg_hba.conf'), hostBasedAccess, 0o600, identity),
    writeAtomically(join(server.directory, 'pg_ident.conf'), map, 0o600, identity),
  ])
}

/**
 * Returns whether a server accepts queries. Between its start and the end of a recovery it rejects sessions with a state of
 * its own.
 */
async function readiness(url: SuperuserUrl): Promise<boolean | 'recovering'> {
  try {
    await connected({ connectionString: url, connectionTimeoutMillis: 1_000 }, (client) => client.query('select 1'))
    return true
  } catch (error) {
    return error instanceof pg.DatabaseError && error.code === cannotConnectNow ? 'recovering' : false
  }
}
