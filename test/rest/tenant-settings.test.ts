// The settings of a tenant's REST interface: a reload checks, stores and applies them, and they are the tenant's own.
import t from 'tap'
import { query } from '#test/support/postgres.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { notes, publish, reload, reloaded, rest, same } from './support/schemas.ts'

const defaults = { db_schemas: ['public'], db_pre_request: null, db_root_spec: null, db_aggregates_enabled: true }

const setAs = (caller: string | undefined, tenant: TestTenant, settings: unknown) =>
  tenant.request('POST', '/admin/reload-schemas', { as: caller, body: { settings } })
const set = (tenant: TestTenant, settings: unknown) => setAs('service', tenant, settings)

/** Sets the settings. @returns those that apply then */
async function apply(tenant: TestTenant, settings: object): Promise<unknown> {
  const response = await set(tenant, settings)
  if (response.status !== 200) throw new Error(response.text)
  return response.json()['settings']
}

t.test('Settings of the REST interface', { timeout: 120_000 }, async (t) => {
  const runtime = await startRuntime(t)

  t.test('A reload sets those that it names, and keeps the others', async (t) => {
    const tenant = await runtime.addTenant()
    t.same((await reloaded(tenant))['settings'], defaults)
    t.same(await apply(tenant, { db_aggregates_enabled: false }), { ...defaults, db_aggregates_enabled: false })
    t.same(await apply(tenant, { db_schemas: ['public', 'a'] }), {
      ...defaults,
      db_schemas: ['public', 'a'],
      db_aggregates_enabled: false,
    })
    t.same((await reloaded(tenant))['settings'], {
      ...defaults,
      db_schemas: ['public', 'a'],
      db_aggregates_enabled: false,
    })
    tenant.change({})
    const { status } = await tenant.request('GET', `${rest}/x`, { as: 'service', headers: { 'accept-profile': 'a' } })
    t.equal(status, 404, 'a runtime that begins to serve the tenant reads them from its home')
    t.same(await apply(tenant, { db_schemas: null, db_aggregates_enabled: null }), defaults)
  })

  t.test('Invalid settings are rejected by name', async (t) => {
    const tenant = await runtime.addTenant()
    for (const [settings, code, message] of [
      [1, 'BAD_REQUEST', 'Field "settings" must be an object.'],
      [[], 'BAD_REQUEST', 'Field "settings" must be an object.'],
      [
        { db_schema: 1 },
        'UNKNOWN_FIELD',
        'Unknown field "settings.db_schema". Allowed: db_schemas, db_pre_request, db_',
      ],
      [
        { db_aggregates_enabled: 'yes' },
        'BAD_REQUEST',
        'Field "settings.db_aggregates_enabled" must be true, false or null.',
      ],
      [{ db_pre_request: 1 }, 'BAD_REQUEST', 'Field "settings.db_pre_request" must be the name of a function'],
      [{ db_pre_request: '' }, 'BAD_REQUEST', 'Field "settings.db_pre_request" must be the name of a function'],
      [{ db_root_spec: 'x'.repeat(64) }, 'BAD_REQUEST', 'Field "settings.db_root_spec" must be the name of a function'],
      [{ db_root_spec: 'a\0b' }, 'BAD_REQUEST', 'Field "settings.db_root_spec" must be the name of a function'],
      [
        { db_schemas: 'public' },
        'BAD_REQUEST',
        'Field "settings.db_schemas" must be a list of 1 to 20 different names',
      ],
      [{ db_schemas: [] }, 'BAD_REQUEST', 'Field "settings.db_schemas" must be a list of 1 to 20 different names'],
      [{ db_schemas: ['a', 'public'] }, 'BAD_REQUEST', 'Field "settings.db_schemas" must be a list'],
      [{ db_schemas: ['public', 'public'] }, 'BAD_REQUEST', 'Field "settings.db_schemas" must be a list'],
      [
        { db_schemas: ['public', ...Array.from({ length: 20 }, (_, n) => `s${n}`)] },
        'BAD_REQUEST',
        'Field "settings.db_',
      ],
      ...['A', 'a.b', 'pg_catalog', 'information_schema', '', 'é', 'a"b', 1, null].map(
        (name) =>
          [{ db_schemas: ['public', name] }, 'BAD_REQUEST', 'Field "settings.db_schemas[1]" must have'] as const,
      ),
    ] as const) {
      const response = await set(tenant, settings)
      t.match(response.json(), { code, statusCode: '400' }, JSON.stringify(settings))
      t.match(String(response.json()['message']), message)
    }
    same(
      t,
      await tenant.request('POST', '/admin/reload-schemas', { as: 'service', body: { setting: {} } }),
      400,
      'UNKNOWN_FIELD',
    )
    t.same((await reloaded(tenant))['settings'], defaults, 'nothing has changed')
  })

  t.test('Only the service role changes them', async (t) => {
    const tenant = await runtime.addTenant()
    same(t, await setAs(undefined, tenant, { db_aggregates_enabled: false }), 401, 'UNAUTHORIZED')
    same(t, await setAs('ada', tenant, { db_aggregates_enabled: false }), 403, 'FORBIDDEN')
    t.same((await reloaded(tenant))['settings'], defaults)
    await t.rejects(
      query(
        tenant.home.adminUrl,
        `update published_catalog set document = document || '{"settings": {"db_pre_request": "x"}}'`,
      ),
      /permission denied/,
      'SQL cannot change what a reload has published',
    )
  })

  t.test('A function must exist, run with its caller’s rights, and be callable without arguments', async (t) => {
    const tenant = await runtime.addTenant()
    await query(
      tenant.home.adminUrl,
      `create function definer() returns void security definer language sql as '';
       create function taking(a integer) returns void language sql as '';
       create function optional(a integer default 1) returns void language sql as '';
       create function two(a integer default 1) returns void language sql as '';
       create function two(a text default '') returns void language sql as '';
       create function several() returns setof integer language sql as 'select 1';
       create function changing() returns trigger language plpgsql as 'begin return new; end';
       create procedure procedural() language sql as '';`,
    )
    for (const name of [
      'definer',
      'taking',
      'two',
      'several',
      'changing',
      'procedural',
      'missing',
      'home_problems',
      'now',
      'pg_sleep',
    ])
      same(
        t,
        await set(tenant, { db_pre_request: name }),
        409,
        'CONFLICT',
        /^The setting "db_pre_request" names ".*"\. The home needs exactly one function/,
      )
    for (const name of ['definer', 'taking', 'changing', 'procedural', 'missing', 'home_problems'])
      same(t, await set(tenant, { db_root_spec: name }), 409, 'CONFLICT', /^The setting "db_root_spec" names/)
    t.match(await apply(tenant, { db_pre_request: 'optional' }), { db_pre_request: 'optional' })
    t.equal((await tenant.request('GET', `${rest}/schemas`, { as: 'service' })).status, 200)

    await query(tenant.home.adminUrl, 'alter function optional security definer')
    same(t, await reload(tenant), 409, 'CONFLICT', /"db_pre_request" names "optional"/)
    await query(tenant.home.adminUrl, 'drop function optional')
    same(t, await reload(tenant), 409, 'CONFLICT')
    const guarded = await tenant.request('GET', `${rest}/schemas`, { as: 'service' })
    t.match(
      { status: guarded.status, code: guarded.json()['code'] },
      { status: 404, code: '42883' },
      'no request passes without it',
    )
    t.match(await apply(tenant, { db_pre_request: null }), defaults)
    t.equal((await tenant.request('GET', `${rest}/schemas`, { as: 'service' })).status, 200)
  })

  t.test('A function before requests concerns only its tenant, and has the context of the caller', async (t) => {
    const [tenant, other] = [await runtime.addTenant(), await runtime.addTenant()]
    for (const one of [tenant, other]) await publish(one, notes)
    await query(
      tenant.home.adminUrl,
      `create function check_caller() returns void language plpgsql as $$ begin
         if current_setting('app.role', true) <> 'service_role' and current_setting('app.user_id', true) <> 'ada' then
           raise sqlstate 'PT403' using message = 'Only Ada, not ' || current_user;
         end if;
       end $$`,
    )
    await apply(tenant, { db_pre_request: 'check_caller' })
    await query(tenant.home.adminUrl, 'alter function check_caller immutable')
    t.equal((await tenant.request('GET', `${rest}/notes`, { as: 'ada' })).status, 200, 'it is called each time')
    t.equal((await tenant.request('GET', `${rest}/notes`, { as: 'ada' })).status, 200)
    const rejected = await tenant.request('GET', `${rest}/notes`, { as: 'ben' })
    t.match(
      rejected.json(),
      { code: 'PT403', message: `Only Ada, not ${tenant.id}` },
      'it runs as the login of the runtime',
    )
    t.equal((await other.request('GET', `${rest}/notes`, { as: 'ben' })).status, 200)
  })

  t.test('A function before requests cannot extend the limits of a request', async (t) => {
    const tenant = await runtime.addTenant()
    const names = ['statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout', 'work_mem']
    await query(
      tenant.home.adminUrl,
      `create function limits() returns text stable language sql as $$ select concat_ws(' ',
         ${names.map((name) => `current_setting('${name}')`).join(', ')}) $$;
       create function extend() returns void language plpgsql as $$ begin
         perform set_config(name, '1000000', name = 'work_mem') from unnest('{${names.join(',')}}'::text[]) name;
       end $$`,
    )
    await reloaded(tenant)
    const limits = async () => (await tenant.request('GET', `${rest}/rpc/limits`)).text
    const before = await limits()
    t.match(before, /^"\d+s 10s 0 4MB"$/)
    await apply(tenant, { db_pre_request: 'extend' })
    for (let n = 0; n < 5; n++) t.equal(await limits(), before)
  })

  t.test('A schema shows the objects of its home with its name, and nothing of other tenants', async (t) => {
    const [tenant, other] = [await runtime.addTenant(), await runtime.addTenant()]
    for (const [one, owner] of [
      [tenant, 'first'],
      [other, 'second'],
    ] as const) {
      await query(
        one.home.adminUrl,
        `create table "a.things" (owner text); insert into "a.things" values ('${owner}');
         alter table "a.things" enable row level security; create policy read on "a.things" using (true);
         create table "a.open" (id integer); insert into "a.open" values (1);
         create table "a.schemas" (id integer); insert into "a.schemas" values (7);
         alter table "a.schemas" enable row level security; create policy read on "a.schemas" using (true);
         create view "a.definer" as select * from "a.things";
         create function "a.definer"() returns integer security definer language sql as 'select 1';
         create table "public.b" (id integer); alter table "public.b" enable row level security;`,
      )
    }
    const { warnings } = (await set(tenant, { db_schemas: ['public', 'a', 'b'] })).json()
    t.match(warnings, [
      /"a\.definer" reads with its owner's rights/,
      /"a\.open" has no row-level security/,
      /"a\.definer" runs with/,
    ])
    await reloaded(other)
    const read = async (one: TestTenant, path: string, schema?: string) => {
      const headers = schema === undefined ? {} : { 'accept-profile': schema }
      const { status, text } = await one.request('GET', `${rest}/${path}`, { headers })
      return status === 200 ? text : status
    }
    t.equal(await read(tenant, 'things', 'a'), '[{"owner":"first"}]')
    t.equal(await read(tenant, 'schemas', 'a'), '[{"id":7}]', 'a table of the schema, not the collection')
    t.equal(await read(tenant, 'schemas'), '[]', 'the collection, of which a public caller sees nothing')
    t.equal(await read(tenant, 'public.b'), '[]')
    for (const path of ['open', 'definer', 'rpc/definer']) t.equal(await read(tenant, path, 'a'), 404, path)
    for (const path of ['things', 'a.things', 'a.open']) t.equal(await read(tenant, path), 404, path)
    t.equal(await read(tenant, 'things', 'b'), 404)
    for (const schema of ['c', 'pg_catalog', 'information_schema', other.id, 'A', 'a.things', ''])
      t.equal(await read(tenant, 'things', schema), 406, `the schema "${schema}"`)
    t.equal(await read(other, 'a.things'), '[{"owner":"second"}]', 'without the setting, names are whole')
    t.equal(await read(other, 'things', 'a'), 406)

    const listed = await tenant
      .client('service')
      .schema('a' as 'public')
      .from('things')
      .select('owner')
    t.same(listed.data, [{ owner: 'first' }], 'an unmodified client selects the schema')
  })

  t.same(runtime.errors, [], 'no internal error occurred')
})
