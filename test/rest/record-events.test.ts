// Changes of records as events: in the transaction of the change, for every writer, visible to callers who may read the
// record, and only where a schema enables them.
import pg from 'pg'
import t from 'tap'
import { query } from '#test/support/postgres.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { alter, insert, publish, reload, reloaded, remove, rest } from './support/schemas.ts'

const notes = {
  name: 'notes',
  events: true,
  rls_policy: { type: 'ownership', owner_field: 'owner' },
  fields: [
    { name: 'id', type: 'number', primary: true },
    { name: 'text', type: 'string' },
    { name: 'at', type: 'datetime' },
  ],
}

const stored = (tenant: TestTenant) =>
  tenant.rows("select type, owner_id, readers, payload from event_log where type like 'record.%' order by seq")
const types = async (tenant: TestTenant) => (await stored(tenant)).map(({ type }) => type)

/** Returns what a caller reads from the log through the interface. */
async function seen(tenant: TestTenant, caller: string | undefined): Promise<unknown[]> {
  return (await tenant.request('GET', `${rest}/event_log?type=like.record.*&order=seq`, { as: caller }))
    .list()
    .map(({ payload }) => (payload as { id: unknown }).id)
}

t.test('Changes of records', async (t) => {
  const runtime = await startRuntime(t)

  t.test('An event has the old and the new record, in the form of the interface', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, notes)
    t.equal(
      (
        await tenant.request('POST', `${rest}/notes`, {
          as: 'u1',
          body: { id: 1, text: 'a', at: '2024-02-29T12:00:00+02:00' },
        })
      ).status,
      201,
    )
    t.equal((await tenant.request('PATCH', `${rest}/notes/1`, { as: 'u1', body: { text: 'b' } })).status, 200)
    t.equal((await tenant.request('DELETE', `${rest}/notes/1`, { as: 'u1' })).status, 200)
    const a = { id: 1, text: 'a', at: '2024-02-29T10:00:00+00:00', owner: 'u1' }
    const b = { ...a, text: 'b' }
    const event = (type: string, record: unknown, old_record: unknown) => ({
      type,
      owner_id: 'u1',
      readers: 'owner',
      payload: {
        type,
        collection: 'notes',
        id: 1,
        record,
        old_record,
        owner_id: 'u1',
        timestamp: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
      },
    })
    const received = await stored(tenant)
    t.match(received, [
      event('record.inserted', a, null),
      event('record.updated', b, a),
      event('record.deleted', null, b),
    ])
    for (const [n, { payload }] of received.entries()) {
      const { record, old_record } = payload as Record<string, unknown>
      t.same(
        [record, old_record],
        [
          [a, null],
          [b, a],
          [null, b],
        ][n],
        'and nothing else',
      )
    }
  })

  t.test('Each changed record has one event; rejected and rolled back changes have none', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, notes)
    await tenant.request('POST', `${rest}/notes`, {
      as: 'service',
      body: Array.from({ length: 500 }, (_, id) => ({ id, text: 'x' })),
    })
    await tenant.request('PATCH', `${rest}/notes?id=lt.200`, { as: 'service', body: { text: 'y' } })
    await tenant.request('DELETE', `${rest}/notes?id=gte.490`, { as: 'service' })
    t.equal(
      (await tenant.request('PATCH', `${rest}/notes?id=eq.9999`, { as: 'service', body: { text: 'y' } })).status,
      204,
    )
    t.equal(
      (await tenant.request('POST', `${rest}/notes`, { as: 'service', body: [{ id: 900 }, { id: 1 }] })).status,
      409,
    )
    t.equal((await tenant.request('POST', `${rest}/notes`, { as: 'u1', body: { id: 901, owner: 'u2' } })).status, 403)
    t.same(
      await tenant.rows(
        'select type, count(*)::int as n, count(distinct payload -> $1)::int as ids from event_log group by type order by type',
        ['id'],
      ),
      [
        { type: 'record.deleted', n: 10, ids: 10 },
        { type: 'record.inserted', n: 500, ids: 500 },
        { type: 'record.updated', n: 200, ids: 200 },
      ],
    )
    t.same(
      await tenant.rows(
        `select count(*)::int as n from event_log where type = 'record.updated'
          and payload -> 'record' ->> 'text' = 'y' and payload -> 'old_record' ->> 'text' = 'x'
          and payload -> 'record' -> 'id' = payload -> 'id'`,
      ),
      [{ n: 200 }],
    )
  })

  t.test('Changes by SQL have events too: upserts, new keys, and cascades', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, notes, {
      name: 'lines',
      events: true,
      rls_policy: { type: 'service' },
      fields: [{ name: 'note', type: 'number', references: { collection: 'notes', on_delete: 'cascade' } }],
    })
    const sql = new pg.Client({ connectionString: tenant.home.adminUrl })
    await sql.connect()
    try {
      await sql.query("set timezone = 'Pacific/Auckland'")
      await sql.query("insert into notes (id, text, at) values (1, 'a', '2024-02-29 10:00Z'), (2, 'b', null)")
      await sql.query('insert into lines (note) values (1), (1)')
      await sql.query(
        "insert into notes (id, text) values (2, 'c'), (3, 'd') on conflict (id) do update set text = excluded.text",
      )
      await sql.query('begin')
      await sql.query('delete from notes')
      await sql.query('rollback')
      await sql.query('update notes set id = 10 where id = 3')
      await sql.query('delete from notes where id = 1')
    } finally {
      await sql.end()
    }
    const received = (await stored(tenant)).map(
      ({ payload }) =>
        payload as { type: string; collection: string; id: unknown; record: Record<string, unknown> | null },
    )
    t.equal(received[0]?.record?.['at'], '2024-02-29T10:00:00+00:00', 'in UTC, in any time zone of the session')
    const brief = received.map(
      ({ type, collection, id }) => `${type.slice(7)} ${collection === 'notes' ? String(id) : collection}`,
    )
    t.same(brief.slice(0, 4), ['inserted 1', 'inserted 2', 'inserted lines', 'inserted lines'])
    t.same(brief.slice(4, 6).sort(), ['inserted 3', 'updated 2'])
    t.same(brief.slice(6, 8).sort(), ['deleted 3', 'inserted 10'], 'a record with another key is another record')
    t.same(brief.slice(8).sort(), ['deleted 1', 'deleted lines', 'deleted lines'])
  })

  t.test('Callers who may read the record see its events', async (t) => {
    const tenant = await runtime.addTenant()
    const of = (name: string, rls_policy: object) => ({ ...notes, name, rls_policy })
    await publish(
      tenant,
      of('own', { type: 'ownership', owner_field: 'owner' }),
      of('shown', { type: 'public_read', owner_field: 'owner' }),
      of('signed', { type: 'authenticated' }),
      of('served', { type: 'service' }),
    )
    for (const [collection, id] of [
      ['own', 1],
      ['shown', 2],
      ['signed', 3],
    ] as const) {
      t.equal((await tenant.request('POST', `${rest}/${collection}`, { as: 'u1', body: { id } })).status, 201)
    }
    await insert(tenant, 'served', { id: 4 })
    t.same(await seen(tenant, 'u1'), [1, 2, 3])
    t.same(await seen(tenant, 'u2'), [2, 3])
    t.same(await seen(tenant, undefined), [2])
    t.same(await seen(tenant, 'service'), [1, 2, 3, 4])

    // The service changes the owner: the former owner sees a deletion, and the new one an insertion without the former
    // content.
    await tenant.request('PATCH', `${rest}/own/1`, { as: 'u1', body: { text: 'secret' } })
    t.equal(
      (await tenant.request('PATCH', `${rest}/own/1`, { as: 'service', body: { owner: 'u2', text: 'clean' } })).status,
      200,
    )
    const last = async (caller: string) =>
      (
        await tenant.request('GET', `${rest}/event_log?type=like.record.*&order=seq.desc&limit=1`, { as: caller })
      ).list()[0]
    t.match(await last('u1'), { type: 'record.deleted', payload: { old_record: { text: 'secret' }, record: null } })
    t.match(await last('u2'), {
      type: 'record.inserted',
      payload: { old_record: null, record: { text: 'clean', owner: 'u2' } },
    })
  })

  t.test('A subscriber can follow the requested collections', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, notes, { ...notes, name: 'others' })
    const follow = async (caller: string, search: string) => {
      const response = await fetch(`${tenant.url}/events/v1?${search}`, {
        headers: { ...tenant.as(caller), 'last-event-id': '0' },
      })
      if (response.status !== 200 || response.body === null)
        throw new Error(`${response.status} ${await response.text()}`)
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
      return async (count: number) => {
        for (let text = ''; ;) {
          const data = text
            .split('\n')
            .filter((line) => line.startsWith('data: '))
            .map((line) => JSON.parse(line.slice(6)) as { id: unknown; collection: string })
          if (data.length >= count) {
            await reader.cancel()
            return data
          }
          const { value, done } = await reader.read()
          if (done) throw new Error(`ended after ${text}`)
          text += value
        }
      }
    }
    const [own, all, other] = [
      await follow('u1', 'collection=notes'),
      await follow('service', 'type=record.inserted,record.deleted'),
      await follow('u2', 'collection=others,notes'),
    ]
    for (const [caller, collection, id] of [
      ['u1', 'others', 1],
      ['u2', 'notes', 2],
      ['u1', 'notes', 3],
      ['u2', 'others', 4],
    ] as const) {
      t.equal((await tenant.request('POST', `${rest}/${collection}`, { as: caller, body: { id } })).status, 201)
    }
    t.match(await own(1), [{ id: 3, collection: 'notes' }])
    t.match(await all(4), [{ id: 1 }, { id: 2 }, { id: 3 }, { id: 4 }])
    t.match(await other(2), [
      { id: 2, collection: 'notes' },
      { id: 4, collection: 'others' },
    ])
    t.match((await tenant.request('GET', '/events/v1?table=notes', { as: 'u1' })).json(), { code: 'UNKNOWN_PARAMETER' })
    t.match((await tenant.request('GET', '/events/v1?collection=No-Collection', { as: 'u1' })).json(), {
      code: 'BAD_REQUEST',
      message: /such as notes/,
    })
  })

  t.test('An event of a large record only states the change, and a subscriber receives many of them', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, notes)
    const large = 'x'.repeat(1_000_000)
    t.equal(
      (
        await tenant.request('POST', `${rest}/notes`, {
          as: 'u1',
          body: Array.from({ length: 15 }, (_, id) => ({ id, text: large })),
        })
      ).status,
      201,
    )
    t.equal(
      (await tenant.request('PATCH', `${rest}/notes?id=eq.0`, { as: 'u1', body: { text: `${large.slice(1)}y` } }))
        .status,
      204,
    )
    t.match((await stored(tenant)).at(-1)?.['payload'], {
      type: 'record.updated',
      id: 0,
      record: null,
      old_record: null,
      too_large: true,
    })
    const response = await fetch(`${tenant.url}/events/v1`, { headers: { ...tenant.as('u1'), 'last-event-id': '0' } })
    const received: unknown[] = []
    let unread = ''
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const lines = (unread + chunk).split('\n')
      unread = lines.pop() ?? ''
      for (const line of lines)
        if (line.startsWith('data: ')) received.push((JSON.parse(line.slice(6)) as { id: unknown }).id)
      if (received.length === 16) break
    }
    t.same(received, [...Array.from({ length: 15 }, (_, id) => id), 0])
  })

  t.test('Events begin and end with a reload, and collections without events have no triggers', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, { ...notes, events: false })
    const triggers = () =>
      tenant.rows("select tgname from pg_trigger where tgrelid = 'notes'::regclass and not tgisinternal order by 1")
    const functions = () =>
      tenant.rows("select proname from pg_proc where pronamespace = $1::regnamespace and proname like '%.events'", [
        tenant.home.schema,
      ])
    await insert(tenant, 'notes', { id: 1 })
    t.same([await triggers(), await functions()], [[], []])
    await alter(tenant, 'notes', { events: true })
    await insert(tenant, 'notes', { id: 2 })
    t.same((await reloaded(tenant))['actions'], ['changes of "notes" are now published as events'])
    await insert(tenant, 'notes', { id: 3 })
    t.same(
      (await stored(tenant)).map(({ payload }) => (payload as { id: number }).id),
      [3],
    )

    // Fields and policy follow the schema.
    const fields = [
      { name: 'id', type: 'number', primary: true },
      { name: 'more', type: 'json' },
    ]
    await alter(tenant, 'notes', { fields, rls_policy: { type: 'public_read', owner_field: 'author' } })
    const { changes } = (await reload(tenant)).json() as { changes: string[] }
    await reloaded(tenant, changes)
    await insert(tenant, 'notes', { id: 4, more: { a: 1 }, author: 'u1' })
    t.match((await stored(tenant)).at(-1), {
      owner_id: 'u1',
      readers: 'anyone',
      payload: { record: { id: 4, more: { a: 1 }, author: 'u1' } },
    })

    // A reload restores a trigger that SQL has dropped.
    await query(tenant.home.adminUrl, 'drop trigger events_insert on notes')
    await reloaded(tenant)
    await insert(tenant, 'notes', { id: 5 })
    t.equal((await types(tenant)).length, 3)

    await alter(tenant, 'notes', { events: false })
    t.same((await reloaded(tenant))['actions'], ['changes of "notes" are no longer published as events'])
    await insert(tenant, 'notes', { id: 6 })
    t.same([await triggers(), await functions()], [[], []])
    await alter(tenant, 'notes', { events: true })
    await reloaded(tenant)
    await remove(tenant, 'notes')
    await reloaded(tenant)
    await query(tenant.home.adminUrl, 'delete from notes')
    t.equal((await types(tenant)).length, 3, 'an unpublished table creates no events')
    t.same([await triggers(), await functions()], [[], []])
  })

  t.same(runtime.errors, [], 'no internal error occurred')
})
