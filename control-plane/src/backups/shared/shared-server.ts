// Sessions on a region's shared Postgres for backups. Each task uses one connection at a time, so that others find theirs.
import { createHash } from 'node:crypto'
import type { Duplex } from 'node:stream'
import pg from 'pg'
import { homeRoles, loaderRole, oneTimePassword, readerRole, tenantsGroup } from '../../homes/index.ts'
import { identifier, literal } from '../../platform/identifiers.ts'
import { connected } from '../../platform/single-connection.ts'
import { hrefOf, inDatabase, type PostgresUrl } from '../../platform/superuser-url.ts'
import { readSettings } from './dump-home.ts'

/** A database of a shared server. */
export interface SharedLocation {
  /** The superuser's URL of the server. */
  postgresUrl: PostgresUrl
  database: string
  /** Opens a connection for a login where no network reaches the server; absent: connections go to the host of the URL. */
  socket?: (role: string, signal: AbortSignal) => Duplex
}

const statementMilliseconds = 3_600_000
/** The niceness of the server's processes that read and load homes: they work when requests leave time for it. */
const niceness = 10
/** A program in a container starts before its connection opens. */
const socketMilliseconds = 60_000

interface OneTimeLogin {
  role: string
  password: string
}

/** Works as superuser. It may run no code of a tenant. */
export function asAdmin<T>(
  location: SharedLocation,
  signal: AbortSignal,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  return session(location, location.postgresUrl, signal, work)
}

/** Works as superuser in a session that can create replication slots. */
export function asReplicator<T>(
  location: SharedLocation,
  signal: AbortSignal,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  // The types of node-postgres lack the parameter.
  const replication = { replication: 'database' } as Partial<pg.ClientConfig>
  return session(location, location.postgresUrl, signal, work, replication)
}

/** Works as another login. */
export function asLogin<T>(
  location: SharedLocation,
  { role, password }: OneTimeLogin,
  signal: AbortSignal,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const url = new URL(hrefOf(location.postgresUrl))
  url.username = role
  url.password = password
  return session(location, url.href, signal, work)
}

async function session<T>(
  { database, socket }: SharedLocation,
  url: PostgresUrl,
  signal: AbortSignal,
  work: (client: pg.Client) => Promise<T>,
  more: Partial<pg.ClientConfig> = {},
): Promise<T> {
  signal.throwIfAborted()
  const config = {
    ...more,
    connectionString: inDatabase(url, database),
    application_name: 'tenantry-backups',
    statement_timeout: statementMilliseconds,
    keepAlive: true,
    ...(socket === undefined
      ? {}
      : { stream: () => socket(new URL(hrefOf(url)).username, signal), connectionTimeoutMillis: socketMilliseconds }),
  }
  return connected(config, async (client) => {
    const stop = () => void client.end().catch(() => undefined)
    signal.addEventListener('abort', stop, { once: true })
    try {
      return await work(client)
    } catch (cause) {
      signal.throwIfAborted()
      throw cause
    } finally {
      signal.removeEventListener('abort', stop)
    }
  })
}

/**
 * Works in a session that reads a home: it sees every row of this home, and nothing of another. Code of the tenant, which
 * can run when its tables are read, has no more rights than the tenant's own login.
 * @param role the login, which exists only meanwhile. Another session with the same one ends.
 */
export async function asReader<T>(
  location: SharedLocation,
  homeId: string,
  schema: string,
  signal: AbortSignal,
  work: (client: pg.Client) => Promise<T>,
  role = readerRole(homeId),
): Promise<T> {
  const { system, owner } = homeRoles(homeId)
  const { password, verifier } = oneTimePassword()
  const rights = `${identifier(system)}, ${identifier(owner)}`
  await asAdmin(location, signal, (client) =>
    client.query(
      [
        dropRoleSql(role),
        `create role ${identifier(role)} login bypassrls connection limit 2 password ${literal(verifier)}`,
        `grant ${identifier(tenantsGroup)} to ${identifier(role)} with inherit true, set false`,
        `grant ${rights} to ${identifier(role)} with inherit true, set false`,
      ].join(';\n'),
    ),
  )
  try {
    return await asLogin(location, { role, password }, signal, async (client) => {
      await yieldToRequests(location, client, signal)
      for (const setting of readSettings(schema)) await client.query(setting)
      return work(client)
    })
  } finally {
    await dropLogin(location, role)
  }
}

/** Statements that begin a session which loads a home into a schema. */
const loadSettings = (schema: string): string[] => [
  `set search_path = ${identifier(schema)}`,
  'set check_function_bodies = off',
  'set row_security = off',
  // Otherwise the next checkpoint writes everything at once, and the commits of others wait for it.
  "set backend_flush_after = '1MB'",
]

/** Lowers the priority of a session. Where the system does not allow it, the priority stays. */
async function yieldToRequests(location: SharedLocation, session: pg.Client, signal: AbortSignal): Promise<void> {
  await asAdmin(location, signal, async (admin) => {
    const { rows } = await session.query<{ pid: number }>('select pg_catalog.pg_backend_pid() as pid')
    const program = `renice -n ${niceness} -p ${Number(rows[0]?.pid)} >/dev/null 2>&1 || true`
    // There is no row, because a program that has ended already cannot read it.
    await admin.query(`copy (select where false) to program ${literal(program)}`)
  })
}

/** Works in a session of a login that no tenant has, and that owns what it creates in the schema. */
export async function asLoader<T>(
  location: SharedLocation,
  homeId: string,
  schema: string,
  signal: AbortSignal,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const role = loaderRole(homeId)
  const { password, verifier } = oneTimePassword()
  const [name, space] = [identifier(role), identifier(schema)]
  await dropLogin(location, role)
  await asAdmin(location, signal, (client) =>
    client.query(
      [
        `create role ${name} login connection limit 2 password ${literal(verifier)}`,
        `grant ${identifier(tenantsGroup)} to ${name} with inherit true, set false`,
        `grant usage, create on schema ${space} to ${name}`,
        `grant select, references on all tables in schema ${space} to ${name}`,
        `grant usage on all sequences in schema ${space} to ${name}`,
      ].join(';\n'),
    ),
  )
  try {
    return await asLogin(location, { role, password }, signal, async (client) => {
      await yieldToRequests(location, client, signal)
      for (const setting of loadSettings(schema)) await client.query(setting)
      return work(client)
    })
  } catch (cause) {
    await dropLogin(location, role)
    throw cause
  }
}

/** Returns SQL that gives everything of the loader to the home's owner, and removes the loader. */
export function adoptLoadedSql(homeId: string): string {
  const role = identifier(loaderRole(homeId))
  return [
    `reassign owned by ${role} to ${identifier(homeRoles(homeId).owner)}`,
    `drop owned by ${role}`,
    `drop role ${role}`,
  ].join(';\n')
}

/** Removes the loader with what it owns, and the reader, after an interruption. */
export async function removeLogins(location: SharedLocation, homeId: string): Promise<void> {
  await dropLogin(location, loaderRole(homeId))
  await dropLogin(location, readerRole(homeId))
}

/** Removes all logins that have read homes for an earlier control plane. They own nothing. */
export async function removeReaders(location: SharedLocation, signal: AbortSignal): Promise<void> {
  const { rows } = await asAdmin(location, signal, (client) =>
    client.query<{ name: string }>(
      `select rolname as name from pg_roles where rolname ~ '^tenantry_reader_[0-9a-f]{20}$'`,
    ),
  )
  for (const { name } of rows) await dropLogin(location, name)
}

/** Removes a login that exists only for a task, and ends its sessions. */
export async function dropLogin(location: SharedLocation, role: string): Promise<void> {
  await asAdmin(location, AbortSignal.timeout(60_000), (client) => client.query(dropRoleSql(role)))
}

function dropRoleSql(role: string): string {
  return `do $drop$ begin
    if to_regrole(${literal(identifier(role))}) is not null then
      perform pg_terminate_backend(pid, 5000) from pg_stat_activity where usename = ${literal(role)};
      drop owned by ${identifier(role)} cascade;
      drop role ${identifier(role)};
    end if;
  end $drop$`
}

/** Returns the ID of the home in which an operation restores a backup only to compare it. */
export function scratchHomeId(operationId: string): string {
  return `t_${createHash('sha256').update(operationId).digest('hex').slice(0, 20)}`
}
