// The control database in a server of its own. Installations of earlier versions have it in the server of the tenants'
// homes, from where it is moved at the first start. A kill at any point leaves the old database or a complete new one, and
// the next start continues.
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type pg from 'pg'
import { closeOpenDatabases, ensureClosedDatabase } from '../../control-plane/src/platform/closed-databases.ts'
import { identifier, literal } from '../../control-plane/src/platform/identifiers.ts'
import { migrate, readMigrations } from '../../control-plane/src/platform/migrations.ts'
import { connected } from '../../control-plane/src/platform/single-connection.ts'
import type { PostgresUrl } from '../../control-plane/src/platform/superuser-url.ts'
import { setOwner, type Identity } from './process/unprivileged.ts'

/** Name of the control database. */
export const controlDatabase = 'tenantry_control'
/** Name of an incomplete copy, in the new server. */
const copyName = 'tenantry_control_copy'
/** Name of the old database after the move, in the server of homes. */
const movedName = 'tenantry_control_moved'

interface ControlDatabaseOptions {
  /** Returns the superuser's URL of a database in the server of the tenants' homes. */
  homes: (database: string) => PostgresUrl
  /** Returns the superuser's URL of a database in the server of the control database. */
  control: (database: string) => PostgresUrl
  /** A directory for tables on their way, which need not exist. Both servers can write in it. */
  directory: string
  identity: Identity | undefined
  log: Pick<Logger, 'info'>
}

/**
 * Creates the control database in its server if it is missing, as a copy of the one in the server of homes if that has
 * one. Closes the databases of both servers to logins without a grant. No control plane may run meanwhile.
 */
export async function ensureControlDatabase(options: ControlDatabaseOptions): Promise<void> {
  const { homes, control, log } = options
  await connected({ connectionString: homes('postgres') }, (old) =>
    connected({ connectionString: control('postgres') }, async (server) => {
      const isOld = await hasDatabase(old, controlDatabase)
      if (isOld && !(await hasDatabase(server, controlDatabase))) {
        log.info('The control database is moved to a Postgres of its own.')
        await copy(server, options)
        log.info('The control database was moved.')
      }
      if (isOld) await renameMoved(old)
      await ensureClosedDatabase(server, controlDatabase)
      // This includes databases that an earlier version, or a kill of it, has left open.
      await closeOpenDatabases(old)
      await closeOpenDatabases(server)
    }),
  )
}

/** Copies the database, which gets its name when it is complete. */
async function copy(server: pg.Client, options: ControlDatabaseOptions): Promise<void> {
  const { homes, control, directory, identity } = options
  const migrations = await readMigrations()
  await server.query(`drop database if exists ${identifier(copyName)} with (force)`)
  await ensureClosedDatabase(server, copyName)
  // Both have the same tables then.
  await migrate(homes(controlDatabase), migrations)
  await migrate(control(copyName), migrations)
  await rm(directory, { recursive: true, force: true })
  await mkdir(directory, { mode: 0o700 })
  await setOwner(directory, identity)
  await connected({ connectionString: homes(controlDatabase) }, (from) =>
    connected({ connectionString: control(copyName) }, (to) => copyRows(from, to, join(directory, 'table'))),
  )
  await rm(directory, { recursive: true, force: true })
  await server.query(`alter database ${identifier(copyName)} rename to ${identifier(controlDatabase)}`)
}

/** Copies all rows and the positions of sequences, in one transaction. @param file a path for one table at a time */
async function copyRows(from: pg.Client, to: pg.Client, file: string): Promise<void> {
  await from.query('begin isolation level repeatable read read only')
  await to.query('begin')
  // Neither triggers nor foreign keys are checked: the rows are those of a valid database.
  await to.query('set local session_replication_role = replica')
  const tables = await tablesOf(from)
  // Migrations insert rows, too.
  await to.query(`truncate ${tables.map(({ name }) => name).join(', ')}`)
  for (const { name, columns } of tables) {
    const { rowCount: sent } = await from.query(`copy ${name} (${columns}) to ${literal(file)}`)
    const { rowCount: received } = await to.query(`copy ${name} (${columns}) from ${literal(file)}`)
    if (sent !== received) throw new Error(`Only ${received} of ${sent} rows of ${name} were copied.`)
    await rm(file)
  }
  for (const name of await sequencesOf(from)) {
    const { rows } = await from.query<{ last_value: string; is_called: boolean }>(
      `select last_value, is_called from ${name}`,
    )
    await to.query('select setval($1, $2, $3)', [name, rows[0]?.last_value, rows[0]?.is_called])
  }
  await to.query('commit')
  await to.query('analyze')
}

/** Returns the tables with their stored columns, quoted for SQL. Generated columns are computed again. */
async function tablesOf(client: pg.Client): Promise<{ name: string; columns: string }[]> {
  const { rows } = await client.query<{ name: string; columns: string }>(`
    select format('%I.%I', n.nspname, c.relname) as name, string_agg(quote_ident(a.attname), ', ' order by a.attnum) as columns
    from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
    where c.relkind = 'r' and n.nspname = 'public' and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
    group by 1 order by 1`)
  return rows
}

async function sequencesOf(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select format('%I.%I', schemaname, sequencename) as name from pg_sequences where schemaname = 'public' order by 1`,
  )
  return rows.map(({ name }) => name)
}

/** Renames the old database, which nothing uses any more. An operator may drop it. */
async function renameMoved(old: pg.Client): Promise<void> {
  let name = movedName
  for (let number = 2; await hasDatabase(old, name); number++) name = `${movedName}_${number}`
  await old.query(`alter database ${identifier(controlDatabase)} rename to ${identifier(name)}`)
}

async function hasDatabase(client: pg.Client, name: string): Promise<boolean> {
  const { rows } = await client.query('select 1 from pg_database where datname = $1', [name])
  return rows.length > 0
}
