// No statement of a tenant, from any of its logins, drops, alters or empties the service's tables in its home. Damage by other
// means is found, repaired and reported.
import pg from 'pg'
import t, { type Test } from 'tap'
import { HomeDatabases } from '#control-plane/homes/home-databases.ts'
import {
  firstMigrationsSql,
  firstQualified,
  loadHomeMigrations,
  ownTarget,
} from '#control-plane/homes/home-migrations.ts'
import { createHomeSql, noLoginSql } from '#control-plane/homes/home-sql.ts'
import { homeRoles } from '#control-plane/homes/home-roles.ts'
import { scramVerifier } from '#control-plane/homes/scram.ts'
import { callHost, compileHostCaller } from '#test/functions/support/host-caller.ts'
import { deployFunction } from '#test/functions/support/deployed.ts'
import { createHome, migrateHome, migrationsDirectory } from '#test/support/home.ts'
import { query, startPostgres, type TestPostgres } from '#test/support/postgres.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { attacks } from './support/attacks.ts'

const passwords = { runtime: 'of-the-runtime', ddl: 'of-the-ddl', admin: 'of-the-admin' }

/** Returns the structure and content of the service's tables, as a superuser sees them. */
async function state(superuser: pg.Client, id: string): Promise<unknown> {
  const rows = async (sql: string, ...values: unknown[]) =>
    (await superuser.query<Record<string, unknown>>(sql, values)).rows
  const tables = (await rows(`select name from "${id}".home_structure where kind = 'table' order by 1`)).map(
    ({ name }) => String(name),
  )
  const hash = (name: string) =>
    `select '${name}' as name, md5(coalesce(string_agg(r::text, ';' order by r::text), '')) as rows from "${id}"."${name}" r`
  return {
    rows: await rows(tables.map(hash).join(' union all ')),
    schema: await rows('select pg_get_userbyid(nspowner) as owner from pg_namespace where nspname = $1', id),
    structure: await rows(
      `select * from "${id}".home_structure_of($1, $2::name[]) where kind <> 'privilege' order by 1, 2`,
      id,
      tables,
    ),
    sequences: await rows('select sequencename, last_value from pg_sequences where schemaname = $1 order by 1', id),
  }
}

/** Runs each list of attacks in its own session, and checks after each that the service's tables are unchanged. */
async function attack(t: Test, postgres: TestPostgres, id: string, url: string, before: string[] = []): Promise<void> {
  const superuser = new pg.Client({ connectionString: postgres.url('homes') })
  await superuser.connect()
  t.teardown(() => superuser.end())
  const expected = await state(superuser, id)
  for (const [label, statements] of Object.entries(attacks(id))) {
    if (label === 'rows' && url.includes(`//${id}:`)) continue
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => undefined)
    await client.connect()
    for (const statement of [...before, ...statements]) await client.query(statement).catch(() => undefined)
    await client.end()
    t.same(await state(superuser, id).catch((error: unknown) => String(error)), expected, label)
  }
}

t.test('no statement of a tenant’s login changes a table of the service', { timeout: 600_000 }, async (t) => {
  const postgres = await startPostgres()
  t.teardown(() => postgres.stop())

  for (const [login, urlOf, before] of [
    ["the tenant's own", (home: Awaited<ReturnType<typeof createHome>>) => home.adminUrl, []],
    [
      "the tenant's own, without the owner's role",
      (home: Awaited<ReturnType<typeof createHome>>) => home.adminUrl,
      ['set role none'],
    ],
    ["the reload's", (home: Awaited<ReturnType<typeof createHome>>) => home.ddl_url, []],
    ["the runtime's", (home: Awaited<ReturnType<typeof createHome>>) => home.url, []],
  ] as const) {
    await t.test(login, async (t) => {
      const home = await createHome(postgres)
      await attack(t, postgres, home.tenantId, urlOf(home), [...before])
      // A role may drop its own privileges, and the repair grants them again.
      await query(home.adminUrl, 'drop owned by current_user').catch(() => undefined)
      const homes = new HomeDatabases(postgres.url('postgres'), await loadHomeMigrations(migrationsDirectory))
      t.equal(await homes.repairHome('homes', home.tenantId, passwords), 'to be migrated')
      t.same(await homes.migrateHome('homes', home.tenantId), { lost: [] })
      await homes.checkLogin('homes', home.tenantId, passwords.runtime)
      await homes.close()
      t.same(await query(postgres.url('homes'), `select * from "${home.tenantId}".home_problems()`), [])
      t.same(
        await query(postgres.url('homes'), 'select rolcanlogin, rolpassword from pg_authid where rolname = $1', [
          homeRoles(home.tenantId).system,
        ]),
        [{ rolcanlogin: false, rolpassword: null }],
      )
    })
  }

  await t.test('a cascading delete does not run the tenant’s own operators', async (t) => {
    const home = await createHome(postgres)
    const id = home.tenantId
    // This operator matches better than Postgres' own one that the trigger uses, and drops a table when it runs.
    await query(
      home.adminUrl,
      `create function evil(float8, int4) returns float8 language plpgsql as $$
      begin execute 'drop table "${id}".usage_hours'; return 1; end $$;
      create operator * (function = evil, leftarg = float8, rightarg = int4)`,
    )
    await query(
      postgres.url('homes'),
      `insert into "${id}".functions (name, trigger_type, wasm_hash, wasm_data, config) values ('f', '"Http"', repeat('0', 64), '', '{}');
      insert into "${id}".function_invocations (id, function_id, trigger) select 'one', id, 'http' from "${id}".functions`,
    )
    await query(
      home.url,
      `select set_config('app.tenant_id', '${id}', false), set_config('app.role', 'service_role', false); delete from functions`,
    )
    t.match(
      await query(
        postgres.url('homes'),
        `select meter, value::int from "${id}".usage_hours where meter = 'function_invocations'`,
      ),
      [{ value: 1 }],
    )
  })
})

t.test('no call with a key changes a table of the service', { timeout: 600_000 }, async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  await deployFunction(tenant, { name: 'master', wasm: await compileHostCaller(), config: { role: 'service_role' } })
  const structure = () =>
    tenant.rows(
      `select * from home_structure_of($1, array(select name::name from home_structure where kind = 'table')) order by 1, 2`,
      [tenant.id],
    )
  const before = await structure()
  const statements = Object.values(attacks(tenant.id))
    .flatMap((list) => list.slice(0, 2))
    .filter((statement) =>
      /^(drop|alter|truncate|create|grant|revoke|comment|lock|do|set|reset|reassign)/.test(statement),
    )
  for (const statement of statements)
    t.equal((await callHost(tenant, 'master', 'ada', 'query', statement)).ok, false, statement)
  for (const name of ['usage_hours', 'home_structure', 'home_problems', 'storage_objects']) {
    const schema = { name, fields: [{ name: 'id', type: 'uuid', primary: true }], rls_policy: { type: 'service' } }
    const response = await tenant.request('POST', '/rest/v1/schemas', { as: 'service', body: schema })
    if (response.status < 300) t.equal(name, 'home_problems', 'only the name of a function is free for a table')
  }
  // This schema is inserted with SQL and passes no check, and the reload rejects it.
  await query(
    tenant.home.adminUrl,
    `insert into schemas (name, fields, rls_policy)
      values ('usage_hours', '[{"name":"id","type":"uuid","primary":true}]', '{"type":"service"}')`,
  )
  const reload = await tenant.request('POST', '/admin/reload-schemas', { as: 'service', body: {} })
  t.ok(reload.status >= 400 && reload.status < 500, reload.text)
  // A reload runs the tenant's functions with the reload's login, which cannot change the service's tables either.
  await query(
    tenant.home.adminUrl,
    `delete from schemas; create function evil() returns text language plpgsql as $$ begin
      begin execute 'set role none'; exception when others then null; end;
      begin execute 'drop table usage_hours'; exception when others then null; end;
      begin execute 'alter table storage_usage disable trigger counted'; exception when others then null; end;
      return 'x'; end $$`,
  )
  const fields = (more: object[]) => [{ name: 'id', type: 'uuid', primary: true }, ...more]
  t.equal(
    (
      await tenant.request('POST', '/rest/v1/schemas', {
        as: 'service',
        body: { name: 'notes', fields: fields([]), rls_policy: { type: 'service' } },
      })
    ).status,
    201,
  )
  t.equal((await tenant.request('POST', '/admin/reload-schemas', { as: 'service', body: {} })).status, 200)
  await query(
    tenant.home.adminUrl,
    'insert into notes default values; alter table notes add check (evil() is not null)',
  )
  await query(
    tenant.home.adminUrl,
    `update schemas set fields = '${JSON.stringify(fields([{ name: 'text', type: 'string', required: true, default: 'a' }]))}'`,
  )
  await tenant.request('POST', '/admin/reload-schemas', { as: 'service', body: {} })
  t.same(await structure(), before)
  t.equal((await tenant.request('GET', '/health')).status, 200)
})

t.test('a home from before the system role', { timeout: 600_000 }, async (t) => {
  const postgres = await startPostgres()
  t.teardown(() => postgres.stop())
  const migrations = await loadHomeMigrations(migrationsDirectory)
  const homes = new HomeDatabases(postgres.url('postgres'), migrations)
  t.teardown(() => homes.close())
  const superuser = postgres.url('homes')
  const url = (role: string, password: string) => `postgresql://${role}:${password}@127.0.0.1:${postgres.port}/homes`
  let n = 0
  const oldHome = async () => {
    const id = `t_${String(++n).padStart(20, '0')}`
    const roles = homeRoles(id)
    const verifier = (password: string) => scramVerifier(password, Buffer.alloc(16, 1))
    await query(
      superuser,
      createHomeSql(
        id,
        { runtime: verifier(passwords.runtime), ddl: verifier(passwords.ddl), admin: verifier(passwords.admin) },
        { runtime: 50, ddl: 4, admin: 10 },
      ),
    )
    await query(
      superuser,
      `alter schema "${id}" owner to "${roles.owner}"; drop owned by "${roles.system}"; drop role "${roles.system}"`,
    )
    await query(
      url(roles.ddl, passwords.ddl),
      firstMigrationsSql(
        ownTarget(id),
        migrations.filter(({ version }) => version < firstQualified),
      ),
    )
    return { id, admin: url(roles.admin, passwords.admin) }
  }
  const upgrade = async (id: string) => {
    t.equal(await homes.repairHome('homes', id, passwords), 'to be migrated')
    return homes.migrateHome('homes', id)
  }
  const errors = (id: string) => query(superuser, `select * from "${id}".home_problems()`)

  await t.test('is upgraded with its rows', async (t) => {
    const { id, admin } = await oldHome()
    await query(
      admin,
      `insert into schemas (name, fields, rls_policy) values ('saved', '[]', '{}');
      create table mine as select 1 as a; insert into storage_buckets (name) values ('files');
      insert into storage_objects (bucket_id, path, blob_id, size, content_type, etag)
        select id, 'a.txt', gen_random_uuid(), 5, 'text/plain', 'e' from storage_buckets where name = 'files'`,
    )
    const before = await query(
      superuser,
      `select (select json_agg(u)::text from "${id}".storage_usage u) as usage,
        (select json_agg(to_jsonb(o))::text from "${id}".storage_objects o) as objects`,
    )
    t.same(await upgrade(id), { lost: [] })
    t.same(await errors(id), [])
    t.same(
      await query(
        superuser,
        `select (select json_agg(u)::text from "${id}".storage_usage u) as usage,
          (select json_agg(to_jsonb(o) - 'content_encoding')::text from "${id}".storage_objects o) as objects`,
      ),
      before,
    )
    t.same(
      await query(superuser, 'select tableowner from pg_tables where schemaname = $1 and tablename = $2', [id, 'mine']),
      [{ tableowner: `${id}_owner` }],
    )
    t.same(await query(admin, 'select name from schemas'), [{ name: 'saved' }])
    await homes.checkLogin('homes', id, passwords.runtime)
    await attack(t, postgres, id, admin)
    t.same(await upgrade(id), { lost: [] }, 'a repeat changes nothing')
  })

  const damages: Record<string, [sql: string, lost: string[]]> = {
    'a lost table': ['drop table usage_hours', ['usage_hours']],
    'lost tables that others refer to': [
      'drop table functions, storage_buckets cascade',
      ['functions', 'storage_buckets'],
    ],
    'a lost ledger': ['drop table home_migrations', ['home_migrations']],
    'a renamed table': ['alter table storage_usage rename to mine', ['storage_usage']],
    'a view in the place of a table': [
      'alter table usage_hours rename to hours; create view usage_hours as select hour, meter, value from hours',
      ['usage_hours'],
    ],
    triggers: [
      `drop trigger gone on function_invocations; alter table storage_usage disable trigger counted;
        create function evil() returns trigger language plpgsql as $$ begin return null; end $$;
        create trigger evil before insert on event_log for each row execute function evil()`,
      [],
    ],
    policies: [
      `drop policy service on functions; alter table event_log disable row level security;
        create policy more on storage_objects using (true)`,
      [],
    ],
    columns: [
      `alter table storage_usage drop column file_count;
        alter table functions alter column enabled drop default, add column more text not null default 'x';
        alter table schemas alter column fields drop not null`,
      [],
    ],
    'constraints and indexes': [
      `alter table usage_hours drop constraint usage_hours_pkey; drop index event_log_by_commit;
        create index mine on schemas (name, fields); alter table storage_objects drop constraint object_path_taken`,
      [],
    ],
    functions: [
      `create or replace function storage_usage_counted() returns trigger language plpgsql security definer as $$
        begin return new; end $$; drop function function_invocations_gone cascade`,
      [],
    ],
    'rules and rights': [
      `create rule r as on update to storage_usage do instead nothing;
        grant all on usage_hours to public; revoke select on usage_hours from "$id"`,
      [],
    ],
    'a table that inherits': ['create table child () inherits (event_log)', []],
  }
  for (const [label, [sql, lost]] of Object.entries(damages)) {
    await t.test(`${label} from before the upgrade, is repaired`, async (t) => {
      const { id, admin } = await oldHome()
      await query(admin, sql.replaceAll('$id', id))
      t.same(await upgrade(id), { lost })
      t.same(await errors(id), [])
      await homes.checkLogin('homes', id, passwords.runtime)
    })
    // A superuser must undo its own renaming of a table.
    if (/renamed|a view/.test(label)) continue
    await t.test(`${label} by a superuser, is found and repaired`, async (t) => {
      const home = await createHome(postgres)
      const id = home.tenantId
      await query(`${superuser}?options=${encodeURIComponent(`-c search_path=${id}`)}`, sql.replaceAll('$id', id))
      t.not((await errors(id)).length, 0)
      await homes.repairHome('homes', id, passwords)
      // The repair alone already renames other objects with a table's name, and detaches inheriting tables.
      if ((await errors(id)).length > 0)
        await t.rejects(homes.checkLogin('homes', id, passwords.runtime), {
          reason: 'HomeDamaged',
          message: /^The home is damaged: /,
        })
      t.same(await homes.migrateHome('homes', id), { lost })
      t.same(await errors(id), [])
      await homes.checkLogin('homes', id, passwords.runtime)
    })
  }

  await t.test('damage that cannot be repaired is reported by name', async (t) => {
    const home = await createHome(postgres)
    const id = home.tenantId
    await query(superuser, `alter table "${id}".usage_hours alter column value type numeric(40, 2)`)
    await homes.repairHome('homes', id, passwords)
    await t.rejects(homes.migrateHome('homes', id), {
      reason: 'HomeDamaged',
      message: /the column "usage_hours.value" is altered/,
    })
    await query(superuser, noLoginSql(id))
  })

  await t.test('lost counters are computed again from the remaining rows, and the store ID stays', async (t) => {
    const home = await createHome(postgres)
    const id = home.tenantId
    await query(
      superuser,
      `insert into "${id}".storage_objects (bucket_id, path, blob_id, size, content_type, etag)
        select id, 'a.txt', gen_random_uuid(), 5, 'text/plain', 'e' from "${id}".storage_buckets`,
    )
    const store = await query(superuser, `select store_id from "${id}".storage_usage`)
    await query(superuser, `drop table "${id}".storage_usage, "${id}".storage_bucket_counters`)
    t.same(await migrateHome(postgres.url('postgres'), id), { lost: ['storage_bucket_counters', 'storage_usage'] })
    t.same(await query(superuser, `select store_id from "${id}".storage_usage`), store)
    t.same(await query(superuser, `select file_count::int, file_bytes::int from "${id}".storage_usage`), [
      { file_count: 1, file_bytes: 5 },
    ])
    t.same(await query(superuser, `select file_count::int, total_size::int from "${id}".storage_bucket_counters`), [
      { file_count: 1, total_size: 5 },
    ])
  })
})
