// Databases of a server that tenants share: a login needs a grant to connect to one. By default, Postgres lets all
// users (PUBLIC) connect to a new database and create temporary tables in it.
import type { ClientBase, Pool } from 'pg'
import { identifier } from './identifiers.ts'

/** Rights that PUBLIC had on a server and that were revoked. */
export interface OpenRights {
  /** Names of databases. */
  databases: string[]
  /** Functions, as `DATABASE: SIGNATURE`. */
  functions: string[]
}

type Server = Pick<ClientBase | Pool, 'query'>

/**
 * Creates the database if it is missing. It accepts no connections before the rights of PUBLIC are revoked, so a kill
 * at any point leaves an inaccessible one, which the next call completes. `created` is called between the two steps.
 */
export async function ensureClosedDatabase(
  server: Server,
  name: string,
  created: () => void | Promise<void> = () => undefined,
): Promise<void> {
  const { rows } = await server.query<{ datconnlimit: number }>(
    'select datconnlimit from pg_database where datname = $1',
    [name],
  )
  // -2 marks a database whose DROP was interrupted: it accepts no connections and must be dropped again.
  const isInvalid = rows[0]?.datconnlimit === -2
  if (isInvalid) await server.query(`drop database ${identifier(name)}`)
  if (rows[0] === undefined || isInvalid) {
    await server
      .query(`create database ${identifier(name)} template template0 allow_connections false`)
      .catch(ignoreExisting)
  }
  await created()
  await server.query(closeSql(name))
  const { rows: unfinished } = await server.query('select 1 from pg_database where datname = $1 and not datallowconn', [
    name,
  ])
  if (unfinished.length > 0) await server.query(`alter database ${identifier(name)} with allow_connections true`)
}

/**
 * Revokes PUBLIC's rights on the server's databases that this login owns; a superuser owns all.
 * @returns the names of the databases that were open
 */
export async function closeOpenDatabases(server: Server): Promise<string[]> {
  const { rows } = await server.query<{ name: string }>(`
    select datname as name from pg_database
    where datallowconn and pg_has_role(datdba, 'usage')
      and exists (select from aclexplode(coalesce(datacl, acldefault('d', datdba))) where grantee = 0)
    order by datname`)
  for (const { name } of rows) await server.query(closeSql(name))
  return rows.map(({ name }) => name)
}

function closeSql(name: string): string {
  return `revoke all on database ${identifier(name)} from public`
}

/** Ignores the error of a concurrent creation. */
function ignoreExisting(error: unknown): void {
  const isExisting = error instanceof Error && 'code' in error && (error.code === '42P04' || error.code === '23505')
  if (!isExisting) throw error
}
