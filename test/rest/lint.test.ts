// Anything that would show more than the policies allow is not served, and reported: to the caller of the reload, and
// in the log if a protection of the service itself was removed.
import t from 'tap'
import { lint, type LintFacts } from '#tenant-runtime/rest/registry/lint.ts'
import { query } from '#test/support/postgres.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { insert, publish, reloaded, rest, same } from './support/schemas.ts'

const safe: LintFacts = { login: { bypasses: false, isOwner: false, reaches: [] }, relations: [], definers: [] }
const table = { name: 'x', kind: 'r', guarded: true, forced: true, invoker: false, owned: false } as const

t.test('The rules', async (t) => {
  const unsafe = (facts: Partial<LintFacts>) =>
    lint({ ...safe, ...facts }, new Set(['notes'])).map((error) => error.unsafe)
  t.same(
    unsafe({ relations: [table, { ...table, forced: false }, { ...table, kind: 'v', guarded: false, invoker: true }] }),
    [],
  )
  for (const relation of [
    { ...table, guarded: false },
    { ...table, owned: true, forced: false },
    { ...table, kind: 'v', guarded: false },
    { ...table, kind: 'm', guarded: false },
    { ...table, kind: 'f', guarded: false },
    { ...table, kind: 'p', guarded: false },
  ] as const)
    t.same(unsafe({ relations: [relation] }), [{ relation: 'x' }], JSON.stringify(relation))
  t.same(
    unsafe({ relations: [{ ...table, name: 'blob_intents', guarded: false }] }),
    [],
    'a table that is never served is not reported',
  )
  t.same(unsafe({ login: { ...safe.login, bypasses: true } }), ['everything'])
  t.same(unsafe({ login: { ...safe.login, isOwner: true } }), ['everything'])
  t.same(unsafe({ login: { ...safe.login, reaches: ['t_other'] } }), ['nothing'])
  t.same(unsafe({ definers: ['f'] }), ['nothing'])
  t.same(
    lint(
      {
        ...safe,
        relations: [
          { ...table, guarded: false },
          { ...table, name: 'notes', guarded: false },
          { ...table, name: 'schemas', guarded: false },
        ],
      },
      new Set(['notes']),
    ).map(({ isAlarming }) => isAlarming),
    [false, true, true],
  )
})

t.test('A home', async (t) => {
  const runtime = await startRuntime(t)
  const notes = {
    name: 'notes',
    fields: [{ name: 'text', type: 'string' }],
    rls_policy: { type: 'ownership', owner_field: 'owner' },
  }

  t.test('A home as the service creates it has no warnings', async (t) => {
    const tenant = await runtime.addTenant()
    t.same((await publish(tenant, { ...notes, events: true }))['warnings'], [])
    tenant.change({})
    t.same((await tenant.request('GET', `${rest}/notes`, { as: 'u1' })).list(), [])
    t.same(runtime.errors, [])
  })

  t.test('A home without a protection does not serve the exposed data, from the next start on', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, notes)
    await insert(tenant, 'notes', { text: 'secret', owner: 'u1' })
    await query(tenant.home.adminUrl, 'alter table notes disable row level security')
    await tenant.rows('alter table event_log disable row level security')
    tenant.change({})
    for (const collection of ['notes', 'event_log'])
      same(t, await tenant.request('GET', `${rest}/${collection}`, { as: 'u2' }), 404, 'PGRST205')
    t.match(runtime.errors.splice(0), [
      /The table "event_log" has no row-level security, so it is not served\./,
      /The table "notes" has no row-level security, so it is not served\./,
    ])
    t.equal((await tenant.request('GET', `${rest}/storage_buckets`, { as: 'u2' })).status, 200, 'the rest is served')
    t.same(
      (await reloaded(tenant))['warnings'],
      ['The table "event_log" has no row-level security, so it is not served.'],
      'a reload restores row-level security of collections',
    )
    t.same((await tenant.request('GET', `${rest}/notes`, { as: 'u2' })).list(), [])
    t.match((await tenant.request('GET', `${rest}/notes`, { as: 'u1' })).list(), [{ text: 'secret' }])
    same(t, await tenant.request('GET', `${rest}/event_log`, { as: 'u2' }), 404, 'PGRST205')
    runtime.errors.splice(0)
  })

  t.test('A reload reports objects that SQL created and that are not safe to serve', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, notes)
    await insert(tenant, 'notes', { text: 'secret', owner: 'u1' })
    for (const sql of [
      'create table open (id int primary key)',
      'create table closed (id int primary key)',
      'alter table closed enable row level security',
      'create view leaking as select * from notes',
      'create view invoking with (security_invoker = true) as select * from notes',
      'create materialized view cached as select * from notes',
      "create function leak() returns bigint language sql security definer as 'select count(*) from notes'",
    ])
      await query(tenant.home.adminUrl, sql)
    t.same((await reloaded(tenant))['warnings'], [
      'The materialized view "cached" has no row-level security, so it is not served.',
      'The view "leaking" reads with its owner\'s rights, without security_invoker, so it is not served.',
      'The table "open" has no row-level security, so it is not served.',
      'The function "leak" runs with its owner\'s rights (security definer), so it is not served.',
    ])
    for (const path of ['open', 'leaking', 'cached'])
      same(t, await tenant.request('GET', `${rest}/${path}`, { as: 'service' }), 404, 'PGRST205')
    t.equal((await tenant.request('POST', `${rest}/rpc/leak`, { as: 'u2', body: {} })).status, 404)
    t.same((await tenant.request('GET', `${rest}/invoking`, { as: 'u2' })).list(), [])
    t.equal((await tenant.request('GET', `${rest}/invoking`, { as: 'u1' })).list().length, 1)
    t.same((await tenant.request('GET', `${rest}/closed`, { as: 'u1' })).list(), [])
    t.same(runtime.errors, [], 'the tenant must repair them, so the log has no error')

    // A table that is opened after the reload is not served from the next start on.
    await query(tenant.home.adminUrl, 'alter table closed disable row level security')
    tenant.change({})
    same(t, await tenant.request('GET', `${rest}/closed`, { as: 'u1' }), 404, 'PGRST205')
  })

  t.test('A home whose login could bypass every policy serves nothing', async (t) => {
    const [tenant, neighbour] = [await runtime.addTenant(), await runtime.addTenant({ name: 'neighbour' })]
    await publish(tenant, notes)
    await publish(neighbour, notes)
    const admin = (sql: string) => query(runtime.postgres.url('homes'), sql)
    for (const [give, take] of [
      [`alter role ${tenant.id} bypassrls`, `alter role ${tenant.id} nobypassrls`],
      [`alter role ${tenant.id} superuser`, `alter role ${tenant.id} nosuperuser`],
      [`grant ${tenant.id}_owner to ${tenant.id}`, `revoke ${tenant.id}_owner from ${tenant.id}`],
    ] as const) {
      await admin(give)
      tenant.change({})
      for (const collection of ['notes', 'schemas', 'storage_objects'])
        same(t, await tenant.request('GET', `${rest}/${collection}`, { as: 'service' }), 404, 'PGRST205')
      t.match(runtime.errors.splice(0), [/, so nothing is served\.$/])
      t.equal((await neighbour.request('GET', `${rest}/notes`, { as: 'u1' })).status, 200, 'the neighbour is served')
      await admin(take)
      tenant.change({})
      t.equal((await tenant.request('GET', `${rest}/notes`, { as: 'u1' })).status, 200)
    }
    await neighbour.rows(`grant usage on schema ${neighbour.id} to ${tenant.id}`)
    await query(neighbour.home.adminUrl, `grant select on notes to ${tenant.id}`)
    t.match(await reloaded(tenant), {
      warnings: [`The login of the runtime has access to the schema "${neighbour.id}".`],
      collections: ['notes'],
    })
    t.match(runtime.errors.splice(0), [new RegExp(`^Home ${tenant.id}: .* has access to the schema`)])
  })

  t.same(runtime.errors, [], 'no internal error occurred')
})
