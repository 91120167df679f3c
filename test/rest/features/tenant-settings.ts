// Features of the settings of a tenant, which a reload sets: several schemas, functions before requests and at the root.
import { query } from '#test/support/postgres.ts'
import { gives, json, rejected, rows, type Feature, type Scene } from './scene.ts'

/** Creates objects as the tenant's login, and changes the settings. */
async function settle({ tenant }: Scene, settings: object, sql = ''): Promise<void> {
  if (sql !== '') await query(tenant.home.adminUrl, sql)
  const response = await tenant.request('POST', '/admin/reload-schemas', { as: 'service', body: { settings } })
  if (response.status !== 200) throw new Error(response.text)
}

/** Runs a check with settings that no other check has. */
const withSettings =
  (settings: object, sql: string, check: (scene: Scene) => Promise<void>): Feature['check'] =>
  async (scene) => {
    await settle(scene, settings, sql)
    await check(scene)
    await settle(scene, Object.fromEntries(Object.keys(settings).map((name) => [name, null])))
  }

const allowAll = (table: string) =>
  `alter table ${table} enable row level security; create policy all_rows on ${table} using (true) with check (true);`

const guarding = `
create function check_request() returns void language plpgsql as $$ begin
  if current_setting('request.headers', true)::json ->> 'user-agent' like '%MSIE 6.0%' then
    perform set_config('response.headers', '[{"Cache-Control": "no-cache, no-store, must-revalidate"}]', true);
  end if;
  if current_setting('request.headers', true)::json ->> 'x-forbidden' is not null then
    raise insufficient_privilege using hint = 'Nope, we are on to you';
  end if;
  if current_setting('request.headers', true)::json ->> 'x-log' is not null then
    insert into lines (entry) values ('before ' || current_setting('request.method', true));
  end if;
  if current_setting('request.headers', true)::json ->> 'x-seen' is not null then
    perform set_config('app.seen', 'yes', false);
  end if;
end $$;
create function seen() returns text stable language sql as $$ select current_setting('app.seen', true) $$;`

const several = `
create table "sales.clients" (id integer primary key, name text not null);
create table "sales.orders" (id integer primary key, client_id integer references "sales.clients", total numeric not null,
  constraint positive check (total > 0));
create table "archive.orders" (id integer primary key, closed boolean not null);
create view "sales.large" with (security_invoker = true) as select * from "sales.orders" where total > 100;
create function "sales.add"(a integer, b integer default 1) returns integer stable language sql as 'select a + b';
create function "sales.label"("sales.orders") returns text stable language sql as $$ select 'order ' || $1.id $$;
create function "sales.recent"("sales.clients") returns setof "sales.orders" stable language sql
  as 'select * from "sales.orders" where client_id = $1.id order by id desc limit 1';
create function "sales.found"() returns setof "sales.orders" stable language sql as 'select * from "sales.orders"';
insert into "sales.clients" values (1, 'Ada'), (2, 'Ben');
insert into "sales.orders" values (1, 1, 50), (2, 1, 150), (3, 2, 20);
insert into "archive.orders" values (9, true);
${['"sales.clients"', '"sales.orders"', '"archive.orders"'].map(allowAll).join('')}`

const sales = { 'accept-profile': 'sales' }

export const tenantSettings: Feature[] = [
  {
    feature: '`db-aggregates-enabled`',
    here: 'same',
    note: '`db_aggregates_enabled` of the tenant, true unless the operator disallows aggregates',
    check: withSettings({ db_aggregates_enabled: false }, '', async (scene) => {
      await gives(
        '/shelves?select=count()',
        rejected(400, 'PGRST123', 'Use of aggregate functions is not allowed'),
      )(scene)
      await settle(scene, { db_aggregates_enabled: true })
      await gives('/shelves?select=count()', rows([{ count: 3 }]))(scene)
    }),
  },
  {
    feature: '`db-pre-request`: a function before each request',
    here: 'same',
    note: '`db_pre_request` of the tenant; it runs with the rights of the caller',
    check: withSettings({ db_pre_request: 'check_request' }, guarding, async (scene) => {
      const { t, request, expect } = scene
      const old = { 'user-agent': 'Mozilla/4.01 (compatible; MSIE 6.0; Windows NT 5.1)' }
      for (const path of ['/shelves', '/shelves?limit=2000', '/shelves/1', '/rpc/add?a=1', '/'])
        t.match(
          await request('GET', path, { headers: old }),
          { status: 200, headers: { 'cache-control': 'no-cache, no-store, must-revalidate' } },
          path,
        )
      t.equal((await request('GET', '/shelves')).headers['cache-control'], undefined)
      const forbidden = rejected(403, '42501', 'insufficient_privilege', {
        hint: 'Nope, we are on to you',
        error: 'raised',
      })
      const headers = { 'x-forbidden': '1' }
      for (const [method, path, body] of [
        ['GET', '/shelves'],
        ['GET', '/shelves?limit=2000'],
        ['GET', '/shelves/1'],
        ['GET', '/'],
        ['GET', '/rpc/add?a=1'],
        ['POST', '/rpc/add', { a: 1 }],
        ['POST', '/shelves', { id: 50, label: 'forbidden' }],
        ['POST', '/shelves', []],
        ['PUT', '/shelves?id=eq.50', { id: 50, label: 'forbidden' }],
        ['PATCH', '/shelves?id=eq.1', { label: 'forbidden' }],
        ['PATCH', '/shelves?id=eq.1', {}],
        ['PATCH', '/shelves/1', { label: 'forbidden' }],
        ['DELETE', '/shelves?id=eq.1'],
        ['DELETE', '/shelves/1'],
      ] as const)
        await expect({ method, path, headers, ...(body === undefined ? {} : { body }) }, forbidden)
      t.equal((await request('HEAD', '/shelves', { headers })).status, 403)
      t.equal((await request('OPTIONS', '/shelves', { headers })).status, 200, 'as in PostgREST, it does not run')
      t.same(await scene.rows("select id from shelves where label = 'forbidden'"), [], 'nothing was written')
    }),
  },
  {
    feature: 'a function before each request that writes',
    here: 'same',
    check: withSettings(
      { db_pre_request: 'public.check_request' },
      '',
      async ({ t, request, expect, rows: stored }) => {
        const headers = { 'x-log': '1' }
        const readOnly = rejected(405, '25006', 'cannot execute INSERT in a read-only transaction')
        for (const path of ['/shelves', '/shelves?limit=2000', '/shelves/1', '/rpc/add?a=1', '/'])
          await expect({ path, headers }, readOnly)
        t.equal((await request('POST', '/rpc/add', { body: { a: 1 }, headers })).status, 200)
        t.equal((await request('POST', '/shelves', { body: { nothing: 1 }, headers })).status, 400)
        t.same(await stored("select entry from lines where entry like 'before %'"), [{ entry: 'before POST' }])
        for (let n = 0; n < 5; n++) await request('GET', '/shelves', { headers: { 'x-seen': '1' } })
        for (let n = 0; n < 10; n++)
          t.notMatch((await request('GET', '/rpc/seen')).text, 'yes', 'settings of a session do not remain')
      },
    ),
  },
  {
    feature: '`db-root-spec`: a function that replaces the description',
    here: 'same',
    note: '`db_root_spec` of the tenant',
    check: withSettings(
      { db_root_spec: 'root' },
      `create function root() returns json stable language sql as $$ select '{"swagger": "2.0", "info": {"title": "Mine"}}'::json $$;`,
      async ({ t, request, expect }) => {
        const mine = { swagger: '2.0', info: { title: 'Mine' } }
        for (const path of ['/', '']) {
          const given = await request('GET', path)
          t.match(given, { status: 200, headers: { 'content-type': json } })
          t.same(given.json(), mine)
        }
        t.match(await request('HEAD', '/'), { status: 200, text: '' })
        t.equal((await request('GET', '/', { headers: { accept: 'application/openapi+json' } })).status, 406)
        await expect(
          { method: 'POST', path: '/', body: {} },
          rejected(405, 'PGRST117', 'Unsupported HTTP method: POST'),
        )
      },
    ),
  },
  {
    feature: '`db-root-spec` with a media type of its own',
    here: 'same',
    check: withSettings(
      { db_root_spec: 'described' },
      `create domain "application/openapi+json" as json;
       create function described() returns "application/openapi+json" stable language sql as $$ select '{"swagger": "2.0"}'::json $$;`,
      async ({ t, request }) => {
        const given = await request('GET', '/', { headers: { accept: 'application/openapi+json' } })
        t.match(given, { status: 200, text: '{"swagger": "2.0"}' })
        t.match(given.headers['content-type'], /^application\/openapi\+json/)
      },
    ),
  },
  {
    feature: '`db-schemas`: several schemas, by `Accept-Profile` and `Content-Profile`',
    here: 'same',
    note: '`db_schemas` of the tenant, the first is `public`; in SQL a schema is the first part of a name: `"sales.orders"`',
    check: withSettings({ db_schemas: ['public', 'sales', 'archive'] }, several, async ({ t, request, expect }) => {
      const one = { id: 1, client_id: 1, total: 50 }
      await expect({ path: '/orders?id=eq.1', headers: sales }, rows([one]))
      await expect({ path: '/orders', headers: { 'accept-profile': 'archive' } }, rows([{ id: 9, closed: true }]))
      t.equal((await request('GET', '/orders')).status, 404, 'the first schema does not have it')
      t.equal((await request('GET', '/sales.orders')).status, 404, 'and not under its name in the home')
      t.equal((await request('GET', '/shelves', { headers: sales })).status, 404)
      t.equal((await request('GET', '/schemas', { headers: sales })).status, 404, 'the collections are in `public`')
      t.equal((await request('GET', '/orders', { headers: sales })).headers['content-profile'], 'sales')
      t.equal((await request('GET', '/shelves')).headers['content-profile'], 'public')
      await expect({ path: '/large?select=id', headers: sales }, rows([{ id: 2 }]))
      await expect(
        { path: '/orders?select=id,label,clients(name)&label=eq.order 2', headers: sales },
        rows([{ id: 2, label: 'order 2', clients: { name: 'Ada' } }]),
      )
      await expect(
        { path: '/clients?select=name,orders(id),recent(id)&order=name&orders.order=id', headers: sales },
        rows([
          { name: 'Ada', orders: [{ id: 1 }, { id: 2 }], recent: [{ id: 2 }] },
          { name: 'Ben', orders: [{ id: 3 }], recent: [{ id: 3 }] },
        ]),
      )
      t.equal((await request('GET', '/rpc/add?a=1', { headers: sales })).text, '2')
      await expect({ path: '/rpc/found?select=id,label&id=eq.3', headers: sales }, rows([{ id: 3, label: 'order 3' }]))
      const writing = { 'content-profile': 'sales', prefer: 'return=representation' }
      const made = await request('POST', '/orders', { body: { id: 4, client_id: 2, total: 5 }, headers: writing })
      t.match({ status: made.status, text: made.text }, { status: 201, text: '[{"id":4,"client_id":2,"total":5}]' })
      t.equal(made.headers['content-profile'], 'sales')
      for (const [method, path, body] of [
        ['PATCH', '/orders?id=eq.4&select=total,label', { total: 6 }],
        ['DELETE', '/orders?id=eq.4&select=total,label', {}],
      ] as const)
        t.match(await request(method, path, { body, headers: writing }), {
          status: 200,
          text: '[{"total":6,"label":"order 4"}]',
        })
      t.equal((await request('POST', '/rpc/add', { body: { a: 2, b: 3 }, headers: writing })).text, '5')
    }),
  },
  {
    feature: 'errors of a schema',
    here: 'same',
    check: withSettings({ db_schemas: ['public', 'sales', 'archive'] }, '', async ({ t, request, expect }) => {
      const other = rejected(406, 'PGRST106', 'Invalid schema: other', {
        hint: 'Only the following schemas are exposed: public, sales, archive',
      })
      await expect({ path: '/orders', headers: { 'accept-profile': 'other' } }, other)
      await expect({ method: 'POST', path: '/orders', body: {}, headers: { 'content-profile': 'other' } }, other)
      await expect(
        { path: '/order', headers: sales },
        rejected(404, 'PGRST205', "Could not find the table 'sales.order' in the schema cache", {
          hint: "Perhaps you meant the table 'sales.orders'",
        }),
      )
      await expect(
        { path: '/rpc/ad?a=1', headers: sales },
        rejected(404, 'PGRST202', 'Could not find the function sales.ad(a) in the schema cache', {
          details:
            'Searched for the function sales.ad with parameter a, but no matches were found in the schema cache.',
          hint: 'Perhaps you meant to call the function sales.add',
        }),
      )
      await expect(
        { path: '/orders?select=id,shelves(id)', headers: sales },
        rejected(400, 'PGRST200', "Could not find a relationship between 'orders' and 'shelves' in the schema cache", {
          details:
            "Searched for a foreign key relationship between 'orders' and 'shelves' in the schema 'sales', but no matches were found.",
        }),
      )
      const writing = { 'content-profile': 'sales' }
      t.match((await request('POST', '/orders', { body: { id: 5, total: -1 }, headers: writing })).json(), {
        code: '23514',
        message: 'new row for relation "sales.orders" violates check constraint "positive"',
      })
      t.match((await request('POST', '/orders', { body: { id: 5, total: 1, none: 1 }, headers: writing })).json(), {
        code: 'PGRST204',
        message: "Could not find the 'none' column of 'orders' in the schema cache",
      })
    }),
  },
  {
    feature: 'OpenAPI of a schema',
    here: 'same',
    check: withSettings({ db_schemas: ['public', 'sales', 'archive'] }, '', async ({ t, request }) => {
      const pathsOf = async (headers: Record<string, string>) =>
        Object.keys((await request('GET', '/', { headers })).json()['paths'] as object)
      t.same((await pathsOf(sales)).sort(), [
        '/',
        '/clients',
        '/clients/{id}',
        '/large',
        '/large/{id}',
        '/orders',
        '/orders/{id}',
        '/rpc/add',
        '/rpc/found',
      ])
      const first = await pathsOf({})
      t.ok(first.includes('/shelves'))
      t.notOk(first.some((path) => path.includes('sales.')))
    }),
  },
]
