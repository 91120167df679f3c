// A home of any size is removed, without an error for others and whatever other tenants do: they may lock its objects, or
// name its roles.
import pg from 'pg'
import t, { type Test } from 'tap'
import { HomeDatabases } from '#control-plane/homes/home-databases.ts'
import { limitObjectsSql } from '#control-plane/homes/object-limit.ts'
import { homeRoles } from '#control-plane/homes/home-roles.ts'
import { prepareHomesSql } from '#control-plane/homes/prepare-database.ts'
import { effort } from '#test/support/effort.ts'
import { createHome, type TestHome } from '#test/support/home.ts'
import { query, startPostgres, type TestPostgres } from '#test/support/postgres.ts'

const tables = effort({ small: 3_000, full: 100_000 })
const roomForTables = 10_000_000

async function connect(t: Test, url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  t.teardown(() => client.end().catch(() => undefined))
  return client
}

/** Creates tables with primary keys, in transactions that lock only some of them, without the limit that tenants have. */
async function createTables(postgres: TestPostgres, tenantId: string, count: number): Promise<void> {
  const client = new pg.Client({ connectionString: postgres.url('homes') })
  await client.connect()
  await client.query(`set role ${homeRoles(tenantId).owner}`)
  await client.query(`set search_path = ${tenantId}`)
  await client.query(
    `do $$ begin for i in 1..${count} loop execute format('create table many_%s (id integer primary key)', i);
      if i % 50 = 0 then commit; end if; end loop; end $$`,
  )
  await client.end()
}

/** Returns what remains of a home in the server. */
async function remains(postgres: TestPostgres, tenantId: string): Promise<unknown> {
  return [
    await query(postgres.url('homes'), 'select nspname from pg_namespace where nspname like $1', [`${tenantId}%`]),
    await query(postgres.url('homes'), 'select rolname from pg_roles where rolname like $1', [`${tenantId}%`]),
    await query(postgres.url('homes'), 'select relname from pg_class where relname like $1 limit 5', ['many\\_%']),
  ]
}

async function start(t: Test, settings: Record<string, string> = {}) {
  const postgres = await startPostgres(settings)
  const homes = new HomeDatabases(postgres.url('postgres'), [])
  t.teardown(async () => {
    await homes.close()
    await postgres.stop()
  })
  await query(postgres.url('homes'), limitObjectsSql(roomForTables))
  const drop = async (home: TestHome, onPart: () => void | Promise<void> = () => undefined) => {
    await homes.endSessions('homes', home.tenantId)
    await homes.dropHome('homes', home.tenantId, { signal: new AbortController().signal, onPart })
  }
  return { postgres, drop }
}

t.test('A home with many tables is dropped in parts, while a neighbour writes', { timeout: 7_200_000 }, async (t) => {
  // The lock table has room for about 4,000 locks.
  const { postgres, drop } = await start(t, { max_connections: '40', max_locks_per_transaction: '64' })
  const [home, neighbour] = [await createHome(postgres), await createHome(postgres)]
  await createTables(postgres, home.tenantId, tables)
  await query(neighbour.adminUrl, 'create table written (n integer)')

  const superuser = await connect(t, postgres.url('homes'))
  const writer = await connect(t, neighbour.adminUrl)
  let [isDone, maxLocks, parts, writes] = [false, 0, 0, 0]
  const errors: unknown[] = []
  const slowest: number[] = []
  const writing = (async () => {
    while (!isDone) {
      const began = performance.now()
      await writer.query('insert into written values (1)').then(
        () => writes++,
        (error: unknown) => errors.push(error),
      )
      slowest.push(performance.now() - began)
      const { rows } = await superuser.query<{ locks: number }>('select count(*)::int as locks from pg_locks')
      maxLocks = Math.max(maxLocks, rows[0]?.locks ?? 0)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  })()
  const began = performance.now()
  // Every other part is interrupted.
  for (let interruptions = 0; ; interruptions++) {
    const isLast = await drop(home, () => {
      parts++
      if (interruptions < 5 && parts % 2 === 0) throw new Error('interrupted')
    }).then(
      () => true,
      (error: unknown) => {
        if (!(error instanceof Error) || error.message !== 'interrupted') throw error
        return false
      },
    )
    if (isLast) break
  }
  isDone = true
  await writing
  slowest.sort((a, b) => a - b)
  t.comment(
    `${tables} tables in ${parts} parts and ${Math.round(performance.now() - began)} ms; at most ${maxLocks} locks; ` +
      `${writes} writes of the neighbour, p99 ${slowest[Math.floor(slowest.length * 0.99)]?.toFixed(1)} ms`,
  )
  t.same(errors, [], 'no write of the neighbour failed')
  t.ok(writes > 0)
  t.ok(maxLocks < 2_000, `at most ${maxLocks} locks`)
  t.same(await remains(postgres, home.tenantId), [[], [], []])
})

t.test('Views, partitions, references, functions and types in every order are dropped', async (t) => {
  const { postgres, drop } = await start(t)
  const home = await createHome(postgres)
  await query(
    home.adminUrl,
    `create type mood as enum ('good'); create domain small as integer check (value < 10);
     create function next_n() returns integer language sql as 'select 1';
     create table a (id integer primary key, m mood, s small default next_n());
     create table b (id integer primary key references a, a_row a);
     alter table a add column b_id integer references b;
     create view first as select 1 as n;
     create view second as select * from a;
     create or replace view first as select s::integer as n from second;
     create materialized view third as select * from first;
     create function rows_of_second() returns setof second language sql begin atomic select * from second; end;
     create table leaf (k integer, id integer); create table top (k integer, id integer) partition by list (k);
     alter table top attach partition leaf for values in (1);
     create index on top (id); create table parent (x integer); create table child () inherits (parent);
     create policy p on a using (id in (select id from b)); create policy p on b using (id in (select id from a));
     create rule r as on insert to a do also insert into b (id) values (new.id);
     create sequence shared; create table u (n integer default nextval('shared'));
     create operator === (leftarg = integer, rightarg = integer, function = int4eq);
     create aggregate total(integer) (sfunc = int4pl, stype = integer)`,
  )
  await drop(home)
  t.same(await remains(postgres, home.tenantId), [[], [], []])
  await drop(home)
})

t.test('No other tenant can prevent that a home is dropped', { timeout: 300_000 }, async (t) => {
  const { postgres, drop } = await start(t)
  await query(postgres.url('postgres'), 'create database tenantry_homes_2')
  await query(postgres.url('tenantry_homes_2'), prepareHomesSql('tenantry_homes_2', roomForTables))
  const [home, neighbour, bystander] = [
    await createHome(postgres),
    await createHome(postgres),
    await createHome(postgres),
  ]
  const roles = homeRoles(home.tenantId)

  await query(
    neighbour.adminUrl,
    `create table guarded (n integer); alter table guarded enable row level security;
     insert into guarded select generate_series(1, 3);
     create function must_not_run() returns boolean language plpgsql as $$ begin raise exception 'it ran'; end $$;
     create policy only_foreign on guarded to ${roles.runtime} using (must_not_run());
     create policy restricting on guarded as restrictive to ${roles.admin} using (must_not_run());
     create policy mixed on guarded for select to ${roles.owner}, ${neighbour.tenantId} using (n = 1);
     do $$ begin for i in 1..1000 loop execute format('create policy more_%s on guarded to ${roles.runtime} using (false)', i);
       end loop; end $$;
     grant select on guarded to ${roles.runtime}, ${neighbour.tenantId};
     alter default privileges grant select on tables to ${roles.ddl}`,
  )
  // Roles belong to the server, so tenants of other databases can name them, too.
  await query(
    postgres.url('tenantry_homes_2'),
    `create schema elsewhere; create table elsewhere.t (n integer); create policy p on elsewhere.t to ${roles.owner} using (true);
     grant select on elsewhere.t to ${roles.admin}`,
  )
  const holder = await connect(t, neighbour.adminUrl)
  await holder.query('begin; lock table guarded in access exclusive mode')
  const reader = await connect(t, bystander.adminUrl)
  await reader.query('begin; select 1')

  await drop(home)
  t.same(await remains(postgres, home.tenantId), [[], [], []])
  await t.rejects(holder.query('select 1'), 'the session that held the lock was ended')
  t.same((await reader.query('select 1 as one')).rows, [{ one: 1 }], 'an uninvolved session of a tenant was not')
  t.same(
    await query(
      postgres.url('homes'),
      'select polname, polroles::regrole[]::text as roles from pg_policy where polrelid = $1::regclass',
      [`${neighbour.tenantId}.guarded`],
    ),
    [{ polname: 'mixed', roles: `{${neighbour.tenantId}}` }],
    'a policy keeps its other roles, and none applies to more roles than before',
  )
  t.same(await query(neighbour.url, `select n from ${neighbour.tenantId}.guarded`), [{ n: 1 }])
})
