// What would let somebody see more than the policies allow is not served, and told of: to whoever reloads, and to the log
// where it is a wall of the service's own that was taken down.
import t from 'tap'
import { lint, type LintFacts } from '#tenant-runtime/rest/registry/lint.ts'
import { query } from '#test/support/postgres.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { insert, publish, reloaded, rest, same } from './support/schemas.ts'

const safe: LintFacts = { login: { bypasses: false, isOwner: false, reaches: [] }, relations: [], definers: [] }
const table = { name: 'x', kind: 'r', guarded: true, forced: true, invoker: false, owned: false } as const

t.test('the rules', async (t) => {
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
    'what is never served is nobody to be told of',
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

t.test('a home', async (t) => {
  const runtime = await startRuntime(t)
  const notes = {
    name: 'notes',
    fields: [{ name: 'text', type: 'string' }],
    rls_policy: { type: 'ownership', owner_field: 'owner' },
  }

  t.test('as the service makes it has nothing to be told of', async (t) => {
    const tenant = await runtime.addTenant()
    t.same((await publish(tenant, { ...notes, events: true }))['warnings'], [])
    tenant.change({})
    t.same((await tenant.request('GET', `${rest}/notes`, { as: 'u1' })).list(), [])
    t.same(runtime.problems, [])
  })

  t.test(
    'in which somebody has taken down a wall serves nothing through the gap, from the next start on',
    async (t) => {
      const tenant = await runtime.addTenant()
      await publish(tenant, notes)
      await insert(tenant, 'notes', { text: 'secret', owner: 'u1' })
      await query(tenant.home.adminUrl, 'alter table notes disable row level security')
      await tenant.rows('alter table event_log disable row level security')
      tenant.change({})
      for (const collection of ['notes', 'event_log'])
        same(t, await tenant.request('GET', `${rest}/${collection}`, { as: 'u2' }), 404, 'PGRST205')
      t.match(runtime.problems.splice(0), [
        /table "event_log" has no row-level security: it is not served/,
        /table "notes" has no row-level security: it is not served/,
      ])
      t.equal((await tenant.request('GET', `${rest}/storage_buckets`, { as: 'u2' })).status, 200, 'the rest is served')
      t.same(
        (await reloaded(tenant))['warnings'],
        ['table "event_log" has no row-level security: it is not served'],
        'a reload puts back that of collections',
      )
      t.same((await tenant.request('GET', `${rest}/notes`, { as: 'u2' })).list(), [])
      t.match((await tenant.request('GET', `${rest}/notes`, { as: 'u1' })).list(), [{ text: 'secret' }])
      same(t, await tenant.request('GET', `${rest}/event_log`, { as: 'u2' }), 404, 'PGRST205')
      runtime.problems.splice(0)
    },
  )

  t.test('says at the reload what of it was made with SQL and is not safe to serve', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, notes)
    await insert(tenant, 'notes', { text: 'secret', owner: 'u1' })
    for (const sql of [
      'create table open (id int primary key)',
      'create table closed (id int primary key)',
      'alter table closed enable row level security',
      'create view leaking as select * from notes',
      'create view asking with (security_invoker = true) as select * from notes',
      'create materialized view kept as select * from notes',
      "create function leak() returns bigint language sql security definer as 'select count(*) from notes'",
    ])
      await query(tenant.home.adminUrl, sql)
    t.same((await reloaded(tenant))['warnings'], [
      'materialized view "kept" has no row-level security: it is not served',
      'view "leaking" reads as its owner, without security_invoker: it is not served',
      'table "open" has no row-level security: it is not served',
      'function "leak" acts as its owner (security definer): it is not served',
    ])
    for (const path of ['open', 'leaking', 'kept'])
      same(t, await tenant.request('GET', `${rest}/${path}`, { as: 'service' }), 404, 'PGRST205')
    t.equal((await tenant.request('POST', `${rest}/rpc/leak`, { as: 'u2', body: {} })).status, 404)
    t.same((await tenant.request('GET', `${rest}/asking`, { as: 'u2' })).list(), [])
    t.equal((await tenant.request('GET', `${rest}/asking`, { as: 'u1' })).list().length, 1)
    t.same((await tenant.request('GET', `${rest}/closed`, { as: 'u1' })).list(), [])
    t.same(runtime.problems, [], "which is the tenant's to mend, and no alarm")

    // Opened after the reload: not served from the next start on.
    await query(tenant.home.adminUrl, 'alter table closed disable row level security')
    tenant.change({})
    same(t, await tenant.request('GET', `${rest}/closed`, { as: 'u1' }), 404, 'PGRST205')
  })

  t.test('whose login could go around every policy serves nothing at all', async (t) => {
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
      t.match(runtime.problems.splice(0), [/: nothing is served$/])
      t.equal((await neighbour.request('GET', `${rest}/notes`, { as: 'u1' })).status, 200, 'the neighbour is served')
      await admin(take)
      tenant.change({})
      t.equal((await tenant.request('GET', `${rest}/notes`, { as: 'u1' })).status, 200)
    }
    await neighbour.rows(`grant usage on schema ${neighbour.id} to ${tenant.id}`)
    await query(neighbour.home.adminUrl, `grant select on notes to ${tenant.id}`)
    t.match(await reloaded(tenant), {
      warnings: [`the login of the runtime reaches the schema "${neighbour.id}"`],
      collections: ['notes'],
    })
    t.match(runtime.problems.splice(0), [new RegExp(`home ${tenant.id}: .* reaches`)])
  })

  t.same(runtime.problems, [], 'none of it was an error of ours')
})
