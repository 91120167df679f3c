// The control database's migrations create what the Prisma schema describes, are applied once, and stop at unknown migrations.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import t from 'tap'
import { openDatabase } from '#control-plane/platform/database.ts'
import { migrate, readMigrations, type Migration } from '#control-plane/platform/migrations.ts'
import { createPlanHistory } from '#control-plane/plans/store-history.ts'
import { createLedgerClosing } from '#control-plane/usage/store-closing.ts'
import { query, startPostgres } from '#test/support/postgres.ts'
import { tablesOfDatabase, tablesOfSchema } from './support/data-model.ts'

const postgres = await startPostgres()
t.teardown(() => postgres.stop())
const migrations = await readMigrations()

let databases = 0
/** Creates an empty database and returns its URL. */
async function emptyDatabase(): Promise<string> {
  const name = `control_${++databases}`
  await query(postgres.url('postgres'), `create database ${name}`)
  return postgres.url(name)
}

const migrationRows = (url: string) => query(url, 'select * from _prisma_migrations order by started_at')
const laterMigration = (sql: string, name = '20990101000000_later'): Migration => ({
  name,
  sql,
  checksum: createHash('sha256').update(sql).digest('hex'),
})

t.test(
  'the migrations create the tables, columns, types, defaults, keys and indexes of the Prisma schema',
  async (t) => {
    const url = await emptyDatabase()
    await migrate(url, migrations)
    const [wanted, found] = await Promise.all([tablesOfSchema(), tablesOfDatabase(url)])
    t.same(Object.keys(found).sort(), Object.keys(wanted).sort())
    t.ok(Object.keys(wanted).length >= 11)
    for (const [table, shape] of Object.entries(wanted)) {
      t.same(found[table]?.columns, shape.columns, `columns of ${table}`)
      t.same(found[table]?.indexes, shape.indexes, `indexes of ${table}`)
      t.same(found[table]?.foreignKeys, shape.foreignKeys, `foreign keys of ${table}`)
    }
  },
)

t.test('the comparison detects each kind of difference', async (t) => {
  const url = await emptyDatabase()
  await migrate(url, migrations)
  for (const change of [
    'alter table plans alter rank type bigint',
    'alter table tenants alter reason set not null',
    "alter table tenants alter desired set default 'suspended'",
    'alter table tenants alter created_at type timestamptz(6)',
    'drop index tenants_status_idx',
    'alter table audit_log drop constraint audit_log_pkey',
    'alter table tenants drop constraint tenants_plan_id_fkey',
    'drop index platform_keys_sha256_key',
    'alter table regions add note text',
    'create table more (id int)',
  ]) {
    const before = await tablesOfDatabase(url)
    await query(url, change)
    t.notSame(await tablesOfDatabase(url), before, change)
  }
})

t.test('the table of applied migrations has the format of `prisma migrate`', async (t) => {
  const url = await emptyDatabase()
  t.same(
    await migrate(url, migrations),
    migrations.map(({ name }) => name),
  )
  const rows = await migrationRows(url)
  t.same(rows.length, migrations.length)
  for (const [nth, row] of rows.entries()) {
    const name = migrations[nth]?.name ?? ''
    const file = await readFile(new URL(`../../prisma/migrations/${name}/migration.sql`, import.meta.url))
    t.match(row, {
      id: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
      migration_name: name,
      checksum: createHash('sha256').update(file).digest('hex'),
      finished_at: Date,
      started_at: Date,
      rolled_back_at: null,
      logs: null,
      applied_steps_count: 1,
    })
    t.ok(Number(row['finished_at']) >= Number(row['started_at']))
  }
  const columns = await query(
    url,
    `
    select attname::text || ' ' || format_type(atttypid, atttypmod) || case when attnotnull then ' not null' else '' end as text
    from pg_attribute where attrelid = '_prisma_migrations'::regclass and attnum > 0 order by attnum`,
  )
  t.same(
    columns.map(({ text }) => text),
    [
      'id character varying(36) not null',
      'checksum character varying(64) not null',
      'finished_at timestamp with time zone',
      'migration_name character varying(255) not null',
      'logs text',
      'rolled_back_at timestamp with time zone',
      'started_at timestamp with time zone not null',
      'applied_steps_count integer not null',
    ],
  )
})

t.test('programs that start at the same time migrate once', async (t) => {
  const url = await emptyDatabase()
  const slow = [...migrations, laterMigration('select pg_sleep(0.05); create table later (id int)')]
  const results = await Promise.all(Array.from({ length: 6 }, () => migrate(url, slow)))
  t.same(
    results.filter((applied) => applied.length > 0),
    [slow.map(({ name }) => name)],
  )
  t.same((await migrationRows(url)).length, slow.length)
  t.same(await query(url, 'select count(*)::int as count from plans'), [{ count: 3 }])
  t.same(await query(url, 'select count(*)::int as count from installation'), [{ count: 1 }])
  t.same(await migrate(url, slow), [], 'a repeat applies nothing')
})

t.test('a newer program applies the missing migrations; the older one then rejects the database', async (t) => {
  const url = await emptyDatabase()
  await migrate(url, migrations)
  const newer = [...migrations, laterMigration('create table later (id int)')]
  t.same(await migrate(url, newer), ['20990101000000_later'])
  const before = await migrationRows(url)
  await t.rejects(migrate(url, migrations), {
    message:
      'The control database is newer than this program: it has the migration 20990101000000_later. Start a newer version.',
  })
  t.same(await migrationRows(url), before)
})

t.test('a migration that was edited after it was applied is rejected', async (t) => {
  const url = await emptyDatabase()
  await migrate(url, migrations)
  const before = await tablesOfDatabase(url)
  const [first] = migrations
  if (first === undefined) throw new Error('there are no migrations')
  const edited = laterMigration(`${first.sql}\ncreate table unexpected (id int);`, first.name)
  await t.rejects(migrate(url, [edited, ...migrations.slice(1), laterMigration('create table later (id int)')]), {
    message: `The migration ${first.name} was changed after it was applied.`,
  })
  t.same(await tablesOfDatabase(url), before, 'later migrations are not applied either')
})

t.test('a migration that fails changes nothing, and can be applied when it is repaired', async (t) => {
  const url = await emptyDatabase()
  const broken = laterMigration('create table half (id int); select 1 / 0')
  await t.rejects(migrate(url, [...migrations, broken]), {
    message: 'The migration 20990101000000_later failed.',
    cause: { code: '22012' },
  })
  t.same(
    (await migrationRows(url)).map((row) => row['migration_name']),
    migrations.map(({ name }) => name),
  )
  t.notOk(Object.keys(await tablesOfDatabase(url)).includes('half'))
  t.same(await migrate(url, [...migrations, laterMigration('create table half (id int)')]), ['20990101000000_later'])
})

t.test('a migration that another tool began is rejected; one that it rolled back is applied', async (t) => {
  const url = await emptyDatabase()
  await migrate(url, migrations)
  const next = laterMigration('create table later (id int)')
  await query(
    url,
    `insert into _prisma_migrations (id, checksum, migration_name) values ('begun', '${next.checksum}', '${next.name}')`,
  )
  await t.rejects(migrate(url, [...migrations, next]), {
    message: /^Another tool began the migration 20990101000000_later and did not finish it/,
  })
  await query(url, "update _prisma_migrations set rolled_back_at = now() where id = 'begun'")
  t.same(await migrate(url, [...migrations, next]), [next.name])
})

t.test('the plan history of existing tenants begins with their current plan and continues from there', async (t) => {
  const url = await emptyDatabase()
  const at = migrations.findIndex(({ name }) => name === '20260302000000_quotas')
  t.ok(at > 0)
  await migrate(url, migrations.slice(0, at))
  const id = (nth: number) => `t_${String(nth).padStart(20, '0')}`
  const [created, deleted] = ['2026-01-10T08:00:00.123Z', '2026-02-20T09:30:00.456Z']
  await query(url, "insert into regions (id, engine, domain) values ('local', 'process', 'localhost')")
  const add = (nth: number, plan: string, desired: string, more: { name?: string; requestedAt?: string } = {}) =>
    query(
      url,
      `insert into tenants (id, name, plan_id, region_id, isolation, desired, status,
          created_at, updated_at, delete_requested_at, purge_after)
      values ($1, $2, $3, 'local', 'schema-per-tenant', $4, $5, $6, $7, $8, $8::timestamptz + interval '7 days')`,
      [
        id(nth),
        more.name ?? `tenant-${nth}`,
        plan,
        desired,
        desired === 'deleted' ? 'deleting' : desired === 'warm' ? 'warm' : 'ready',
        created,
        deleted,
        more.requestedAt ?? null,
      ],
    )
  const running = ['active', 'suspended', 'paused', 'restoring'] as const
  for (const [nth, desired] of running.entries()) await add(nth, nth % 2 === 0 ? 'Free' : 'Pro', desired)
  await add(4, 'Enterprise', 'deleted', { requestedAt: deleted })
  // The clock stepped back before this tenant was deleted.
  await add(5, 'Pro', 'deleted', { requestedAt: '2026-01-10T07:59:00.000Z' })
  await add(6, 'Free', 'warm', { name: `warm-${id(6).slice(2)}` })
  await add(7, 'Free', 'deleted', { name: `warm-${id(7).slice(2)}`, requestedAt: deleted })
  // This tenant was on Free before its change, which no table recorded.
  await add(8, 'Free', 'active')
  await query(url, "update tenants set plan_id = 'Pro' where id = $1", [id(8)])

  t.same(
    await migrate(url, migrations),
    migrations.slice(at).map(({ name }) => name),
  )
  const periods = async () =>
    (await query(url, 'select tenant_id, plan_id, since, until from plan_periods order by tenant_id, since')).map(
      ({ tenant_id: tenant, plan_id: plan, since, until }) => [
        tenant,
        plan,
        (since as Date).toISOString(),
        until === null ? null : (until as Date).toISOString(),
      ],
    )
  const filled = [
    ...running.map((_, nth) => [id(nth), nth % 2 === 0 ? 'Free' : 'Pro', created, null]),
    [id(4), 'Enterprise', created, deleted],
    [id(5), 'Pro', created, created],
    [id(8), 'Pro', created, null],
  ]
  t.same(
    await periods(),
    filled,
    'each tenant that had a plan has it from its creation to its deletion, and no other tenant has one',
  )

  const [changed, gone, claimed] = ['2026-03-05T00:00:00.000Z', '2026-03-06T00:00:00.000Z', '2026-03-07T00:00:00.000Z']
  await query(url, "update tenants set plan_id = 'Enterprise', updated_at = $2 where id = $1", [id(0), changed])
  await query(
    url,
    "update tenants set desired = 'deleted', status = 'deleting', delete_requested_at = $2, purge_after = $2 where id = $1",
    [id(1), gone],
  )
  await query(
    url,
    "update tenants set desired = 'active', status = 'pending', created_at = $2, name = 'claimed' where id = $1",
    [id(6), claimed],
  )
  t.same(await periods(), [
    [id(0), 'Free', created, changed],
    [id(0), 'Enterprise', changed, null],
    [id(1), 'Pro', created, gone],
    ...filled.slice(2, 6),
    [id(6), 'Free', claimed, null],
    ...filled.slice(6),
  ])

  const database = openDatabase(url)
  t.teardown(() => database.$disconnect())
  t.same(
    await createLedgerClosing(database, () => new Date(deleted)).firstOpenMonth(),
    new Date('2026-01-01T00:00:00Z'),
    'months close from the first month on',
  )
  const history = createPlanHistory(database)
  t.same(await history.periods(id(0), new Date('2026-03-01T00:00:00Z'), new Date('2026-04-01T00:00:00Z')), [
    { plan: 'Free', since: new Date('2026-03-01T00:00:00Z'), until: new Date(changed) },
    { plan: 'Enterprise', since: new Date(changed), until: new Date('2026-04-01T00:00:00Z') },
  ])
})

t.test('of the boots of a gateway that leased before the migration, the one seen last is the latest', async (t) => {
  const url = await emptyDatabase()
  const at = migrations.findIndex(({ name }) => name === '20260305120000_connection_slots')
  t.ok(at > 0)
  await migrate(url, migrations.slice(0, at))
  const boot = (nth: number) => `00000000-0000-4000-8000-00000000000${nth}`
  for (const [source, nth, seen, ended] of [
    ['a', 1, '08:00', true],
    ['a', 2, '09:00', false],
    ['a', 3, '08:30', false],
    ['b', 4, '07:00', false],
    ['b', 5, '07:00', false],
  ] as const) {
    await query(url, 'insert into lease_holders (source, boot, sequence, seen_at, ended) values ($1, $2, 1, $3, $4)', [
      source,
      boot(nth),
      `2026-03-01T${seen}:00Z`,
      ended,
    ])
  }
  await migrate(url, migrations)
  t.same(
    (await query(url, 'select boot from lease_holders where latest order by boot')).map(({ boot: one }) => one),
    [boot(2), boot(5)],
  )
})
