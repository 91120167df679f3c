// Changes of tables that a tenant has created with SQL: how they become events, and their receivers.
import type pg from 'pg'
import t, { type Test } from 'tap'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { until } from '#test/support/until.ts'
import { changesOf, follow, openSql } from './support/follow-changes.ts'

const cards = { event: '*', schema: 'public', table: 'cards' }

/** Opens a session as the tenant's own login has it, with the table `cards`. */
async function withCards(t: Test, tenant: TestTenant): Promise<pg.Client> {
  const sql = await openSql(tenant)
  t.teardown(() => sql.end())
  await sql.query(`select set_config('app.tenant_id', $1, false)`, [tenant.id])
  await sql.query(`create table cards (id bigint generated always as identity primary key, user_id text, title text,
    price numeric(10, 2), tags text[], at timestamptz)`)
  return sql
}

/** Returns types, records and old records. */
const shown = (changes: ReturnType<typeof changesOf>) =>
  changes.map(({ data }) => [data.type, data.record?.['title'], data.old_record?.['id']])

t.test('Changes of SQL tables', async (t) => {
  const runtime = await startRuntime(t)

  t.test('A table is followed after the call, with its own types, in the order of commits', async (t) => {
    const tenant = await runtime.addTenant()
    const sql = await withCards(t, tenant)
    const { raw: early, reply: rejection } = await follow(tenant, 'service', cards)
    t.match(rejection.payload, {
      status: 'error',
      response: { reason: /table "cards" are not events.* created with SQL, run: select realtime_follow\('cards'\)/ },
    })
    early.leave()
    await sql.query(`select realtime_follow('cards')`)
    const { raw, reply } = await follow(tenant, 'service', cards, { ...cards, filter: 'price=gt.5,title=like.t%' })
    t.match(reply.payload, { status: 'ok' })
    await sql.query(`insert into cards (title, price, tags, at) values ('one', 1.5, '{a,b}', '2026-11-27T10:00:00Z')`)
    await sql.query(`update cards set price = 7.25, title = 'two'`)
    await sql.query('delete from cards')
    await until(() => changesOf(raw).length === 3)
    const changes = changesOf(raw)
    t.same(
      changes.map(({ ids }) => ids.length),
      [1, 2, 2],
    )
    t.match(changes[0]?.data, {
      schema: 'public',
      table: 'cards',
      record: { id: 1, user_id: null, title: 'one', price: 1.5, tags: ['a', 'b'], at: '2026-11-27T10:00:00+00:00' },
      errors: null,
    })
    t.same(
      changes[0]?.data.columns.map(({ name, type }) => `${name} ${type}`),
      ['id int8', 'user_id text', 'title text', 'price numeric', 'tags _text', 'at timestamptz'],
    )
    t.same(shown(changes), [
      ['INSERT', 'one', undefined],
      ['UPDATE', 'two', 1],
      ['DELETE', undefined, 1],
    ])
    raw.leave()
  })

  t.test(
    'A transaction that is rolled back sends nothing, and an earlier one that commits later is not skipped',
    async (t) => {
      const tenant = await runtime.addTenant()
      const sql = await withCards(t, tenant)
      const other = await openSql(tenant)
      t.teardown(() => other.end())
      await other.query(`select set_config('app.tenant_id', $1, false)`, [tenant.id])
      await sql.query(`select realtime_follow('cards')`)
      const { raw } = await follow(tenant, 'service', cards)
      await sql.query('begin')
      await sql.query(`insert into cards (title) values ('undone')`)
      await sql.query('rollback')
      await sql.query('begin')
      await sql.query(`insert into cards (title) values ('slow')`)
      await other.query(`insert into cards (title) values ('quick')`)
      await sql.query(`insert into cards (title) select 'many ' || n from generate_series(1, 3) n`)
      await sql.query('savepoint s')
      await sql.query(`insert into cards (title) values ('undone too')`)
      await sql.query('rollback to s')
      await sql.query('commit')
      await until(() => changesOf(raw).length === 5)
      t.same(
        changesOf(raw).map(({ data }) => data.record?.['title']),
        ['slow', 'quick', 'many 1', 'many 2', 'many 3'],
      )
      raw.leave()
    },
  )

  t.test('Only the service receives changes, unless the call names other readers', async (t) => {
    const tenant = await runtime.addTenant()
    const sql = await withCards(t, tenant)
    // A policy that allows everything changes nothing: the call decides.
    await sql.query('alter table cards enable row level security')
    await sql.query('create policy everything on cards using (true)')
    const followers: Record<string, Awaited<ReturnType<typeof follow>>['raw']> = {}
    await sql.query(`select realtime_follow('cards')`)
    for (const caller of ['ada', 'ben', 'anonymous', 'service'])
      followers[caller] = (await follow(tenant, caller === 'anonymous' ? undefined : caller, cards)).raw
    const calls = [
      `realtime_follow('cards')`,
      `realtime_follow('cards', 'service')`,
      `realtime_follow('cards', owner_column => 'user_id')`,
      `realtime_follow('cards', 'signed_in')`,
      `realtime_follow('cards', readers => 'anyone')`,
    ]
    for (const [n, text] of calls.entries()) {
      await sql.query(`select ${text}`)
      await sql.query('insert into cards (user_id, title) values ($1, $2)', ['ada', String(n)])
    }
    await until(() => followers['service'] !== undefined && changesOf(followers['service']).length === calls.length)
    t.same(
      Object.fromEntries(
        Object.entries(followers).map(([caller, raw]) => [
          caller,
          changesOf(raw).map(({ data }) => data.record?.['title']),
        ]),
      ),
      { ada: ['2', '3', '4'], ben: ['3', '4'], anonymous: ['4'], service: ['0', '1', '2', '3', '4'] },
    )
    for (const raw of Object.values(followers)) raw.leave()
  })

  t.test('A row that gets another owner, or another key', async (t) => {
    const tenant = await runtime.addTenant()
    const sql = await withCards(t, tenant)
    await sql.query(`select realtime_follow('cards', owner_column => 'user_id')`)
    const { raw: ada } = await follow(tenant, 'ada', cards)
    const { raw: ben } = await follow(tenant, 'ben', cards)
    const { raw: service } = await follow(tenant, 'service', cards)
    await sql.query(`insert into cards (user_id, title) values ('ada', 'one')`)
    await sql.query(`update cards set user_id = 'ben', title = 'two'`)
    await sql.query(`update cards set id = default`)
    await until(() => changesOf(service).length === 4)
    t.same(shown(changesOf(ada)), [
      ['INSERT', 'one', undefined],
      ['DELETE', undefined, 1],
    ])
    t.same(shown(changesOf(ben)).slice(0, 1), [['INSERT', 'two', undefined]])
    t.same(shown(changesOf(ben)).slice(1).sort(), [
      ['DELETE', undefined, 1],
      ['INSERT', 'two', undefined],
    ])
    t.same(shown(changesOf(service)).slice(0, 2), [
      ['INSERT', 'one', undefined],
      ['UPDATE', 'two', 1],
    ])
    for (const raw of [ada, ben, service]) raw.leave()
  })

  t.test('Writes through REST are followed, also by users', async (t) => {
    const tenant = await runtime.addTenant()
    const sql = await withCards(t, tenant)
    await sql.query('alter table cards enable row level security')
    await sql.query(`create policy own on cards using (user_id = current_setting('app.user_id', true))`)
    await sql.query(`select realtime_follow('cards', owner_column => 'user_id')`)
    await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })
    const { raw: ada } = await follow(tenant, 'ada', cards)
    const { raw: ben } = await follow(tenant, 'ben', cards)
    const inserted = await tenant.request('POST', '/rest/v1/cards', {
      as: 'ada',
      body: { user_id: 'ada', title: 'hers' },
    })
    t.equal(inserted.status, 201, inserted.text)
    await tenant.request('POST', '/rest/v1/cards', { as: 'ben', body: { user_id: 'ben', title: 'his' } })
    await until(() => changesOf(ada).length === 1 && changesOf(ben).length === 1)
    t.same([shown(changesOf(ada))[0]?.[1], shown(changesOf(ben))[0]?.[1]], ['hers', 'his'])
    for (const name of ['realtime_follow', 'realtime_unfollow', 'event_log_changes_of'])
      t.equal((await tenant.request('POST', `/rest/v1/rpc/${name}`, { as: 'service', body: {} })).status, 404, name)
    for (const raw of [ada, ben]) raw.leave()
  })

  t.test('A key of several columns, a new column, a column that is dropped, and a partitioned table', async (t) => {
    const tenant = await runtime.addTenant()
    const sql = await withCards(t, tenant)
    await sql.query(
      `create table parts (room int, title text, id int, tenant_id text, primary key (id, room)) partition by range (room)`,
    )
    await sql.query('create table parts_1 partition of parts for values from (0) to (100)')
    await sql.query(`select realtime_follow('parts', 'anyone')`)
    const { raw } = await follow(tenant, undefined, { ...cards, table: 'parts' })
    await sql.query(`insert into parts values (1, 'one', 7, 'own')`)
    await sql.query('alter table parts add column more text default $$more$$, drop column tenant_id')
    await sql.query(`update parts set title = 'two'`)
    await sql.query('delete from parts')
    await until(() => changesOf(raw).length === 3)
    t.match(
      changesOf(raw).map(({ data }) => [data.record, data.old_record]),
      [
        [{ room: 1, title: 'one', id: 7, tenant_id: 'own' }, undefined],
        [
          { room: 1, title: 'two', id: 7, more: 'more' },
          { id: 7, room: 1 },
        ],
        [undefined, { id: 7, room: 1 }],
      ],
    )
    raw.leave()
    await t.rejects(sql.query(`select realtime_follow('parts_1')`), /"parts_1" is a partition/)
  })

  t.test('After unfollow, a join is rejected and writes have no events', async (t) => {
    const tenant = await runtime.addTenant()
    const sql = await withCards(t, tenant)
    await sql.query(`select realtime_follow('cards')`)
    await sql.query(`select realtime_unfollow('cards')`)
    await sql.query(`select realtime_unfollow('cards')`)
    await sql.query(`insert into cards (title) values ('quiet')`)
    const { raw, reply } = await follow(tenant, 'service', cards)
    t.match(reply.payload, { status: 'error', response: { reason: /realtime_follow\('cards'\)/ } })
    raw.leave()
    t.same(await tenant.rows(`select 1 from event_log where payload ->> 'collection' = 'cards'`), [])
  })

  t.test('The call names what is wrong', async (t) => {
    const tenant = await runtime.addTenant()
    const sql = await withCards(t, tenant)
    await sql.query('create table bare (title text); create view shown as select * from cards')
    const cases: [string, RegExp][] = [
      [`realtime_follow('bare')`, /The table "bare" has no primary key/],
      [`realtime_follow('missing')`, /relation "missing" does not exist/],
      [`realtime_follow('shown')`, /"shown" is not a table of your own schema/],
      [`realtime_follow('pg_class')`, /"pg_class" is not a table of your own schema/],
      [`realtime_follow('storage_objects')`, /"storage_objects" is a table of the service/],
      [`realtime_follow('cards', 'all')`, /Invalid readers "all". Allowed: service, owner, signed_in, anyone/],
      [`realtime_follow('cards', 'owner')`, /The readers "owner" require owner_column/],
      [
        `realtime_follow('cards', owner_column => 'owner')`,
        /no column "owner". It has: id, user_id, title, price, tags, at/,
      ],
    ]
    for (const [call, reason] of cases) await t.rejects(sql.query(`select ${call}`), reason, call)
    // Without its key, the table's changes cannot be told apart.
    await sql.query(`select realtime_follow('cards')`)
    await sql.query('alter table cards drop constraint cards_pkey')
    await t.rejects(sql.query(`insert into cards (title) values ('one')`), {
      message: 'The changes of the table "cards" are events, and the table has no primary key.',
      hint: /realtime_unfollow\('cards'\)/,
    })
    await sql.query(`select realtime_unfollow('cards')`)
    await sql.query(`insert into cards (title) values ('one')`)
  })

  t.test('A row that is too large for an event has only its key', async (t) => {
    const tenant = await runtime.addTenant()
    const sql = await withCards(t, tenant)
    await sql.query(`select realtime_follow('cards')`)
    const { raw } = await follow(tenant, 'service', cards)
    await sql.query(`insert into cards (title) select string_agg(md5(n::text), '') from generate_series(1, 80000) n`)
    await until(() => changesOf(raw).length === 1)
    t.match(changesOf(raw)[0]?.data, { type: 'INSERT', errors: ['Error 413: Payload Too Large'], record: { id: 1 } })
    t.same(Object.keys(changesOf(raw)[0]?.data.record ?? {}), ['id'])
    raw.leave()
  })
})
