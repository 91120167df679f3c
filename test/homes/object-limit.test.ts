// A home has a limited number of relations and of other objects, however its tenant creates them, and the tenant cannot
// remove or bypass the limit.
import pg from 'pg'
import t, { type Test } from 'tap'
import { limitObjectsSql } from '#control-plane/homes/object-limit.ts'
import { prepareHomesSql, unpreparedSql } from '#control-plane/homes/prepare-database.ts'
import { createHome, migrateHome, type TestHome } from '#test/support/home.ts'
import { query, startPostgres } from '#test/support/postgres.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { until } from '#test/support/until.ts'
import { addSchema, publish, reload, same, schema } from '#test/rest/support/schemas.ts'

const maxObjects = 100
const beyond = { code: '54000', constraint: 'objects_of_home' }

/** Creates tables, each of one relation, until only `room` more relations are allowed. */
async function fill(home: TestHome, room: number): Promise<void> {
  await query(
    home.adminUrl,
    `do $$ begin for i in 1..${maxObjects - room} loop execute format('create table filled_%s (a integer)', i); end loop; end $$`,
  )
}

t.test('A tenant cannot have more objects than allowed', async (t) => {
  const postgres = await startPostgres()
  t.teardown(() => postgres.stop())
  const superuser = postgres.url('homes')
  await query(superuser, limitObjectsSql(maxObjects))

  const objectsOf = async (home: TestHome) =>
    (await query(superuser, 'select relations::int, others::int from tenantry.home_objects($1, 0)', [home.tenantId]))[0]
  const connect = async (t: Test, url: string) => {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => undefined)
    await client.connect()
    t.teardown(() => client.end())
    return client
  }

  await t.test('Every way of creating relations is rejected at the limit', async (t) => {
    const home = await createHome(postgres)
    await query(
      home.adminUrl,
      `create table parent (a integer, b integer) partition by list (a); create index on parent (a); create index on parent (b);
       create table part (a integer, b integer); create table plain (a integer);
       create function make() returns void language plpgsql security definer as $$ begin
         execute 'create table made (a integer)'; end $$`,
    )
    const { relations = 0 } = (await objectsOf(home)) ?? {}
    await fill(home, Number(relations))
    t.match(await objectsOf(home), { relations: maxObjects })
    for (const sql of [
      'create table t (a integer)',
      'create table t as select 1 as a',
      'select 1 as a into t',
      'create index on plain (a)',
      'create index concurrently on plain (a)',
      'reindex index concurrently parent_a_idx',
      'alter table plain add unique (a)',
      'alter table plain add primary key (a)',
      'alter table parent attach partition part for values in (1)',
      'create table t partition of parent for values in (2)',
      'create view t as select 1 as a',
      'create materialized view t as select 1 as a',
      'create sequence t',
      'alter table plain add column s serial',
      "do $$ begin execute 'create table t (a integer)'; end $$",
      'select make()',
      'prepare p as select 1 as a; create table t as execute p',
      'begin isolation level serializable; create table t (a integer); commit',
      // A transaction that fails at its end creates nothing either.
      'begin; create table t (a integer); savepoint s; drop table plain; rollback to s; commit',
    ]) {
      const client = await connect(t, home.adminUrl)
      await t.rejects(client.query(sql), beyond, sql)
      await client.end()
    }
    t.match(await objectsOf(home), { relations: maxObjects })
    t.same(
      await query(home.ddl_url, 'create table t (a integer)').catch(
        (error: unknown) => (error as pg.DatabaseError).code,
      ),
      '54000',
      'the login of reloads',
    )
  })

  await t.test('Functions, types and other objects have the same limit', async (t) => {
    const home = await createHome(postgres)
    const { others = 0 } = (await objectsOf(home)) ?? {}
    await query(
      home.adminUrl,
      `do $$ begin for i in 1..${maxObjects - Number(others)} loop
         execute format('create function f_%s() returns integer language sql as ''select 1''', i); end loop; end $$`,
    )
    for (const sql of [
      "create function f() returns integer language sql as 'select 1'",
      "create procedure f() language sql as 'select 1'",
      'create aggregate f(integer) (sfunc = int4pl, stype = integer)',
      "create type f as enum ('a')",
      'create type f as (a integer)',
      'create domain f as integer',
      'create operator === (leftarg = integer, rightarg = integer, function = int4eq)',
      "create collation f (locale = 'C')",
      'create text search configuration f (copy = simple)',
    ])
      await t.rejects(query(home.adminUrl, sql), beyond, sql)
    await query(home.adminUrl, 'create table t (a integer)')
    await query(home.adminUrl, 'create or replace function f_1() returns integer language sql as $$ select 2 $$').then(
      () => t.pass('an existing function can be replaced'),
      (error: unknown) => t.error(error),
    )
  })

  await t.test('Identity columns, keys and TOAST tables count', async (t) => {
    const home = await createHome(postgres)
    // A table with its TOAST table and its index, a primary key, a sequence, and a unique index.
    await query(home.adminUrl, 'create table t (a bigint generated always as identity primary key, b text unique)')
    t.match(await objectsOf(home), { relations: 6 })
    await fill(home, 6)
    t.match(await objectsOf(home), { relations: maxObjects })
    await t.rejects(query(home.adminUrl, 'create table u (a integer)'), beyond)
  })

  await t.test('Transactions at the same time do not add up to more', async (t) => {
    const home = await createHome(postgres)
    await fill(home, 1)
    const [first, second, snapshot] = [
      await connect(t, home.adminUrl),
      await connect(t, home.adminUrl),
      await connect(t, home.adminUrl),
    ]
    await snapshot.query('begin isolation level repeatable read')
    await snapshot.query('select 1')
    await first.query('begin')
    await first.query('create table one (a integer)')
    const waiting = second.query('create table two (a integer)').then(
      () => undefined,
      (error: unknown) => error,
    )
    await until(
      async () =>
        (await query(superuser, "select 1 from pg_locks where locktype = 'advisory' and not granted")).length > 0,
    )
    await first.query('commit')
    t.match(await waiting, beyond)
    // It does not see the table that the first has created.
    await t.rejects(snapshot.query('create table three (a integer)'), { ...beyond, hint: /READ COMMITTED/ })
    t.match(await objectsOf(home), { relations: maxObjects })
  })

  await t.test('A home at its limit can be used, changed, emptied and migrated', async (t) => {
    const home = await createHome(postgres)
    await fill(home, 0)
    await query(home.adminUrl, 'alter table filled_1 add column b integer; insert into filled_1 values (1, 2)')
    await query(home.adminUrl, 'alter table filled_1 rename to renamed')
    t.same(await migrateHome(postgres.url('postgres'), home.tenantId), { lost: [] })
    await query(home.adminUrl, 'drop table renamed; create table again (a integer)')
    await query(superuser, limitObjectsSql(maxObjects / 2))
    await query(home.adminUrl, 'alter table again add column b integer; drop table again')
    await t.rejects(query(home.adminUrl, 'create table again (a integer)'), beyond, 'a lower limit applies at once')
    await query(superuser, limitObjectsSql(maxObjects))
    await query(home.adminUrl, 'create table again (a integer)')
  })

  await t.test("A home's login finds that its database must be prepared again", async (t) => {
    const home = await createHome(postgres)
    const problems = async () => (await query(home.url, unpreparedSql(maxObjects))).map(({ problem }) => problem)
    t.same(await problems(), [])
    await query(
      superuser,
      'alter event trigger tenantry_limit_indexes disable; grant execute on function lo_create(oid) to public',
    )
    t.same((await problems()).sort(), [
      'the function lo_create(oid) is open to all logins',
      'the limit of objects is not installed',
    ])
    await query(superuser, prepareHomesSql('homes', maxObjects))
    t.same(await problems(), [])
  })

  await t.test('A tenant cannot remove the limit, and no tenant’s limit concerns another', async (t) => {
    const [home, other] = [await createHome(postgres), await createHome(postgres)]
    await fill(home, 0)
    for (const url of [home.adminUrl, home.ddl_url, home.url])
      for (const sql of [
        'alter event trigger tenantry_limit_objects disable',
        'drop event trigger tenantry_limit_objects',
        'drop event trigger tenantry_limit_indexes',
        'drop function tenantry.limit_objects() cascade',
        'create or replace function tenantry.limit_objects() returns event_trigger language plpgsql as $$ begin end $$',
        'drop schema tenantry cascade',
        'set session_replication_role = replica',
        'set event_triggers = off',
        "select tenantry.home_objects('x', 1)",
      ])
        await t.rejects(query(url, sql), /permission denied|must be owner/, sql)
    await t.rejects(query(home.adminUrl, 'create table t (a integer)'), beyond)
    await query(other.adminUrl, 'create table t (a integer primary key)')
  })
})

t.test('A reload beyond the limit reports it, and changes nothing', async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  await publish(tenant, schema('notes', { name: 'title', type: 'string' }))
  const superuser = new URL(tenant.home.adminUrl)
  Object.assign(superuser, { username: 'postgres', password: 'test-only' })
  await query(superuser.href, limitObjectsSql(maxObjects))
  await query(
    tenant.home.adminUrl,
    `do $$ begin for i in 1..${maxObjects - 6} loop execute format('create table filled_%s (a integer)', i); end loop; end $$`,
  )
  await addSchema(tenant, schema('more', { name: 'title', type: 'string', unique: true }))
  await addSchema(tenant, schema('most', { name: 'title', type: 'string', unique: true }))
  same(t, await reload(tenant), 409, 'CONFLICT', /The home would have \d+ relations\. Allowed: 100\./)
  t.same(await query(tenant.home.adminUrl, "select to_regclass('more') as a, to_regclass('most') as b"), [
    { a: null, b: null },
  ])
})
