// However large a tenant makes its schemas and its catalogs with SQL, the runtime reads a bounded part and reports the limit.
import t from 'tap'
import { requireBounded } from '#tenant-runtime/rest/registry/home-bounds.ts'
import { deployFunction } from '#test/functions/support/deployed.ts'
import { command } from '#test/functions/support/wasm.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { rest } from './support/schemas.ts'

/** Creates functions with more than 100,000 parameters together. */
const manyParameters = `do $$ begin for n in 1..1001 loop
  execute format('create function f%s(%s) returns integer language sql as ''select 1''', n,
    (select string_agg('p' || i || ' integer', ', ') from generate_series(1, 100) i)); end loop; end $$`
const noFunctions = `do $$ begin for n in 1..1001 loop execute format('drop function f%s', n); end loop; end $$`

t.test('Structures beyond a bound are rejected before they are read', { timeout: 120_000 }, async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  const rejectsReload = async (message: RegExp) => {
    const response = await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })
    t.match({ status: response.status, ...response.json() }, { status: 413, code: 'QUOTA_EXCEEDED', message })
    t.ok(Number(response.json()['used']) > Number(response.json()['limit']))
  }
  await tenant.rows(`create table notes (id integer primary key); alter table notes enable row level security`)

  for (const [what, fill, empty, message] of [
    [
      'schemas',
      `insert into schemas (name, fields, rls_policy)
       select 'big' || n, jsonb_build_array(repeat('x', 6000000)), '{}' from generate_series(1, 3) n`,
      "delete from schemas where name like 'big%'",
      /^The schemas have 180\d{5} bytes\. Allowed: 16777216\.$/,
    ],
    [
      'parameters of functions',
      manyParameters,
      noFunctions,
      /^The home has 100\d{3} columns and parameters of functions\. Allowed: 100000\.$/,
    ],
    [
      'a comment',
      `do $$ begin execute format('comment on table notes is %L', repeat('x', 9000000)); end $$`,
      'comment on table notes is null',
      /^The home has 9\d{6} bytes of comments and defaults\. Allowed: 8388608\.$/,
    ],
    [
      // Postgres limits one default to about 150,000 equal characters.
      'defaults',
      `do $$ begin execute format('create table wide (%s)',
         (select string_agg(format('c%s text default %L', n, repeat('x', 100000)), ', ') from generate_series(1, 91) n));
       end $$; alter table wide enable row level security`,
      'drop table wide',
      /^The home has 9\d{6} bytes of comments and defaults\. Allowed: 8388608\.$/,
    ],
  ] as const) {
    await tenant.rows(fill)
    await rejectsReload(message)
    await tenant.rows(empty)
    t.equal((await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })).status, 200, `without ${what}`)
  }

  const fresh = await runtime.addTenant()
  await fresh.rows(manyParameters)
  const list = () => fresh.request('GET', `${rest}/storage_buckets`, { as: 'service' })
  t.match((await list()).json(), { code: 'QUOTA_EXCEEDED', limit: 100_000 }, 'a home without a reload')
  await fresh.rows(noFunctions)
  t.equal((await list()).status, 200)
})

t.test('Each bound has its message, and a home at the bounds is read', async (t) => {
  const size = { columns: 100_000, parts: 50_000, texts: 8_388_608 }
  t.doesNotThrow(() => requireBounded(size))
  for (const [name, what] of [
    ['columns', 'columns and parameters of functions'],
    ['parts', 'constraints, indexes, triggers and policies'],
    ['texts', 'bytes of comments and defaults'],
  ] as const)
    t.throws(() => requireBounded({ ...size, [name]: size[name] + 1 }), {
      code: 'QUOTA_EXCEEDED',
      message: `The home has ${size[name] + 1} ${what}. Allowed: ${size[name]}.`,
    })
})

t.test('A list of deliveries shows a part of a long error, and no payload beyond 6 MB', async (t) => {
  const runtime = await startRuntime(t)
  const tenant: TestTenant = await runtime.addTenant()
  const id = await deployFunction(tenant, { name: 'one', wasm: command() })
  await tenant.rows(
    `insert into function_deliveries (function_id, payload, state, last_error)
     values ($1, to_jsonb(repeat('x', 7000000)), 'dead', repeat('e', 1000000)), ($1, '{"a":1}', 'dead', 'short')`,
    [id],
  )
  const page = async (cursor = '') => {
    const response = await tenant.request('GET', `/functions/v1/one/deliveries?limit=1${cursor}`, { as: 'service' })
    return response.json() as { deliveries: { last_error: string; payload: unknown }[]; next_cursor: string }
  }
  const first = await page()
  t.match(first.deliveries, [{ payload: null }])
  t.equal(first.deliveries[0]?.last_error.length, 4_096)
  t.match((await page(`&cursor=${first.next_cursor}`)).deliveries, [{ payload: { a: 1 }, last_error: 'short' }])
})
