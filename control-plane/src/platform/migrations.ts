// Applies prisma/migrations at start and records them as `prisma migrate` does, so that either tool can continue.
import { createHash, randomUUID } from 'node:crypto'
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import { closeOpenDatabases } from './closed-databases.ts'
import { closePublicFunctions } from './public-functions.ts'
import { connected } from './single-connection.ts'
import type { PostgresUrl } from './superuser-url.ts'

const directory = new URL('../../../prisma/migrations/', import.meta.url).pathname

/** Advisory lock of migrations, the same for every control plane. */
const lockKey = 7_246_305_115

const createMigrationsTableSql = `create table if not exists _prisma_migrations (
  id varchar(36) primary key not null, checksum varchar(64) not null, finished_at timestamptz,
  migration_name varchar(255) not null, logs text, rolled_back_at timestamptz,
  started_at timestamptz not null default now(), applied_steps_count integer not null default 0)`

/** One migration of the control database, in the order of `name`. */
export interface Migration {
  name: string
  sql: string
  /** SHA-256 of the file, computed as in Prisma. */
  checksum: string
}

/** Reads the migrations from their directory, in order. */
export async function readMigrations(from: string = directory): Promise<Migration[]> {
  const entries = await readdir(from, { withFileTypes: true })
  const names = entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort()
  return Promise.all(
    names.map(async (name) => {
      const sql = await readFile(join(from, name, 'migration.sql'), 'utf8')
      return { name, sql, checksum: createHash('sha256').update(sql).digest('hex') }
    }),
  )
}

/**
 * Migrates the database to this version. Concurrent starts wait for each other.
 * @returns the names of the migrations that were applied now
 * @throws Error if the database is newer than this program, or an applied migration was changed
 */
export async function migrate(url: PostgresUrl, migrations: Migration[]): Promise<string[]> {
  return connected({ connectionString: url, application_name: 'tenantry-migrations' }, async (client) => {
    // The end of the session releases the lock.
    await client.query('select pg_advisory_lock($1)', [lockKey])
    // Tenants may have logins on this server, and the database holds the secrets of all tenants.
    await closeOpenDatabases(client)
    await closePublicFunctions(client)
    await client.query(createMigrationsTableSql)
    const { rows } = await client.query<{ migration_name: string; checksum: string; finished_at: Date | null }>(
      'select migration_name, checksum, finished_at from _prisma_migrations where rolled_back_at is null order by started_at',
    )
    const known = new Map(migrations.map((migration) => [migration.name, migration]))
    for (const row of rows) {
      const migration = known.get(row.migration_name)
      if (migration === undefined) {
        throw new Error(
          `The control database is newer than this program: it has the migration ${row.migration_name}. Start a newer version.`,
        )
      }
      if (row.finished_at === null) {
        throw new Error(
          `Another tool began the migration ${row.migration_name} and did not finish it. Resolve it with that tool.`,
        )
      }
      if (row.checksum !== migration.checksum) {
        throw new Error(`The migration ${row.migration_name} was changed after it was applied.`)
      }
      known.delete(row.migration_name)
    }
    for (const migration of known.values()) await apply(client, migration)
    return [...known.keys()]
  })
}

async function apply(client: pg.Client, migration: Migration): Promise<void> {
  try {
    await client.query('begin')
    await client.query(migration.sql)
    await client.query(
      `insert into _prisma_migrations (id, checksum, finished_at, migration_name, applied_steps_count)
       values ($1, $2, clock_timestamp(), $3, 1)`,
      [randomUUID(), migration.checksum, migration.name],
    )
    await client.query('commit')
  } catch (cause) {
    throw new Error(`The migration ${migration.name} failed.`, { cause })
  }
}
