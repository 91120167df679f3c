// The control database's migrations: they say what the Prisma schema says, are applied once, and never over what they don't know.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import t from 'tap'
import { migrate, readMigrations, type Migration } from '../../control-plane/src/persistence/migrations.ts'
import { query, startPostgres } from '../support/postgres.ts'
import { tablesOfDatabase, tablesOfSchema } from './support/data-model.ts'

const postgres = await startPostgres()
t.teardown(() => postgres.stop())
const migrations = await readMigrations()

let databases = 0
/** A new, empty database. */
async function emptyDatabase(): Promise<string> {
  const name = `control_${++databases}`
  await query(postgres.url('postgres'), `create database ${name}`)
  return postgres.url(name)
}

const ledger = (url: string) => query(url, 'select * from _prisma_migrations order by started_at')
const later = (sql: string, name = '20990101000000_later'): Migration => ({ name, sql, checksum: createHash('sha256').update(sql).digest('hex') })

t.test('the migrations make what the Prisma schema says: tables, columns, types, defaults, keys and indexes', async (t) => {
  const url = await emptyDatabase()
  await migrate(url, migrations)
  const [wanted, made] = await Promise.all([tablesOfSchema(), tablesOfDatabase(url)])
  t.same(Object.keys(made).sort(), Object.keys(wanted).sort())
  t.ok(Object.keys(wanted).length >= 11)
  for (const [table, shape] of Object.entries(wanted)) {
    t.same(made[table]?.columns, shape.columns, `columns of ${table}`)
    t.same(made[table]?.indexes, shape.indexes, `indexes of ${table}`)
    t.same(made[table]?.foreignKeys, shape.foreignKeys, `foreign keys of ${table}`)
  }
})

t.test('the comparison sees a difference of each kind', async (t) => {
  const url = await emptyDatabase()
  await migrate(url, migrations)
  for (const change of [
    'alter table plans alter rank type bigint', 'alter table tenants alter reason set not null',
    "alter table tenants alter desired set default 'suspended'", 'alter table tenants alter created_at type timestamptz(6)',
    'drop index tenants_status_idx', 'alter table audit_log drop constraint audit_log_pkey',
    'alter table tenants drop constraint tenants_plan_id_fkey',
    'drop index platform_keys_sha256_key', 'alter table regions add note text', 'create table more (id int)',
  ]) {
    const before = await tablesOfDatabase(url)
    await query(url, change)
    t.notSame(await tablesOfDatabase(url), before, change)
  }
})

t.test('the ledger is the one of `prisma migrate`', async (t) => {
  const url = await emptyDatabase()
  t.same(await migrate(url, migrations), migrations.map(({ name }) => name))
  const rows = await ledger(url)
  t.same(rows.length, migrations.length)
  for (const [nth, row] of rows.entries()) {
    const name = migrations[nth]?.name ?? ''
    const file = await readFile(new URL(`../../prisma/migrations/${name}/migration.sql`, import.meta.url))
    t.match(row, {
      id: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, migration_name: name, checksum: createHash('sha256').update(file).digest('hex'),
      finished_at: Date, started_at: Date, rolled_back_at: null, logs: null, applied_steps_count: 1,
    })
    t.ok(Number(row['finished_at']) >= Number(row['started_at']))
  }
  const columns = await query(url, `
    select attname::text || ' ' || format_type(atttypid, atttypmod) || case when attnotnull then ' not null' else '' end as text
    from pg_attribute where attrelid = '_prisma_migrations'::regclass and attnum > 0 order by attnum`)
  t.same(columns.map(({ text }) => text), [
    'id character varying(36) not null', 'checksum character varying(64) not null', 'finished_at timestamp with time zone',
    'migration_name character varying(255) not null', 'logs text', 'rolled_back_at timestamp with time zone',
    'started_at timestamp with time zone not null', 'applied_steps_count integer not null',
  ])
})

t.test('many that start at once migrate once', async (t) => {
  const url = await emptyDatabase()
  const slow = [...migrations, later('select pg_sleep(0.05); create table later (id int)')]
  const results = await Promise.all(Array.from({ length: 6 }, () => migrate(url, slow)))
  t.same(results.filter((applied) => applied.length > 0), [slow.map(({ name }) => name)])
  t.same((await ledger(url)).length, slow.length)
  t.same(await query(url, 'select count(*)::int as count from plans'), [{ count: 3 }])
  t.same(await query(url, 'select count(*)::int as count from installation'), [{ count: 1 }])
  t.same(await migrate(url, slow), [], 'once more does nothing')
})

t.test('a newer program adds what is missing; the older one then refuses the database', async (t) => {
  const url = await emptyDatabase()
  await migrate(url, migrations)
  const newer = [...migrations, later('create table later (id int)')]
  t.same(await migrate(url, newer), ['20990101000000_later'])
  const before = await ledger(url)
  await t.rejects(migrate(url, migrations), {
    message: 'the control database is newer than this program: it has the migration 20990101000000_later. Start a newer version.',
  })
  t.same(await ledger(url), before)
})

t.test('a migration that was edited after it was applied is refused', async (t) => {
  const url = await emptyDatabase()
  await migrate(url, migrations)
  const before = await tablesOfDatabase(url)
  const [first] = migrations
  if (first === undefined) throw new Error('there are no migrations')
  const edited = later(`${first.sql}\ncreate table sneaked_in (id int);`, first.name)
  await t.rejects(migrate(url, [edited, ...migrations.slice(1), later('create table later (id int)')]), {
    message: `the migration ${first.name} was changed after it was applied`,
  })
  t.same(await tablesOfDatabase(url), before, 'also what comes after it was not applied')
})

t.test('a migration that fails leaves nothing, and can be applied when it is mended', async (t) => {
  const url = await emptyDatabase()
  const broken = later('create table half (id int); select 1 / 0')
  await t.rejects(migrate(url, [...migrations, broken]), { message: 'the migration 20990101000000_later failed', cause: { code: '22012' } })
  t.same((await ledger(url)).map((row) => row['migration_name']), migrations.map(({ name }) => name))
  t.notOk(Object.keys(await tablesOfDatabase(url)).includes('half'))
  t.same(await migrate(url, [...migrations, later('create table half (id int)')]), ['20990101000000_later'])
})

t.test('what another tool began is left to it; what it rolled back is applied', async (t) => {
  const url = await emptyDatabase()
  await migrate(url, migrations)
  const next = later('create table later (id int)')
  await query(url, `insert into _prisma_migrations (id, checksum, migration_name) values ('begun', '${next.checksum}', '${next.name}')`)
  await t.rejects(migrate(url, [...migrations, next]), { message: /20990101000000_later was begun by another tool and not finished/ })
  await query(url, "update _prisma_migrations set rolled_back_at = now() where id = 'begun'")
  t.same(await migrate(url, [...migrations, next]), [next.name])
})
