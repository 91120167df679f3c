// From a schema to its endpoints (specification 2.3, 4.3, 5.8, 9.2): none before the reload, then records under the
// ownership policy, through plain HTTP and through an unmodified client.
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'
import { absent, addSchema, notes, publish, reload, rest, same } from './support/schemas.ts'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

t.test('The generated interface', async (t) => {
  const runtime = await startRuntime(t)

  t.test('The interface changes with the schemas at a reload, and never before', async (t) => {
    const tenant = await runtime.addTenant()
    const neighbour = await runtime.addTenant({ name: 'neighbour' })
    same(t, await tenant.request('GET', `${rest}/notes`, { as: 'u1' }), 404, 'PGRST205')
    t.equal((await addSchema(tenant, notes)).status, 201)
    for (const [method, path] of [
      ['GET', 'notes'],
      ['POST', 'notes'],
      ['GET', `notes/${absent}`],
      ['PATCH', `notes/${absent}`],
      ['DELETE', `notes/${absent}`],
    ] as const) {
      const body = method === 'POST' || method === 'PATCH' ? { title: 'x' } : undefined
      same(
        t,
        await tenant.request(method, `${rest}/${path}`, { as: 'u1', ...(body === undefined ? {} : { body }) }),
        404,
        'PGRST205',
      )
    }
    t.match((await reload(tenant)).json(), { success: true, collections: ['notes'] })
    t.same((await tenant.request('GET', `${rest}/notes`, { as: 'u1' })).list(), [])
    same(t, await neighbour.request('GET', `${rest}/notes`, { as: 'u1' }), 404, 'PGRST205')
    same(t, await tenant.request('GET', `${rest}/note`, { as: 'u1' }), 404, 'PGRST205')
    t.equal((await tenant.request('POST', `${rest}/notes`, { as: 'u1', body: { title: 'kept' } })).status, 201)

    const wider = [...notes.fields, { name: 'done', type: 'boolean' }]
    t.equal(
      (await tenant.request('PATCH', `${rest}/schemas?name=eq.notes`, { as: 'service', body: { fields: wider } }))
        .status,
      204,
    )
    same(
      t,
      await tenant.request('POST', `${rest}/notes`, { as: 'u1', body: { title: 'x', done: true } }),
      400,
      'PGRST204',
      /'done' column of 'notes'/,
    )
    t.notOk('done' in ((await tenant.request('GET', `${rest}/notes`, { as: 'u1' })).list()[0] ?? {}))
    t.equal((await reload(tenant)).status, 200)
    t.equal((await tenant.request('POST', `${rest}/notes`, { as: 'u1', body: { title: 'y', done: true } })).status, 201)
    t.same((await tenant.request('GET', `${rest}/notes?select=title,done&order=title`, { as: 'u1' })).list(), [
      { title: 'kept', done: null },
      { title: 'y', done: true },
    ])

    t.equal((await tenant.request('DELETE', `${rest}/schemas?name=eq.notes`, { as: 'service' })).status, 204)
    t.equal(
      (await tenant.request('GET', `${rest}/notes`, { as: 'u1' })).list().length,
      2,
      'a deleted schema is served until the reload',
    )
    // Reads the registry again, as a restart does.
    tenant.change({})
    t.equal(
      (await tenant.request('GET', `${rest}/notes`, { as: 'u1' })).list().length,
      2,
      'and a restart does not reload',
    )
    t.equal((await reload(tenant)).status, 200)
    same(t, await tenant.request('GET', `${rest}/notes`, { as: 'u1' }), 404, 'PGRST205')
    await publish(tenant, { ...notes, fields: wider })
    t.equal(
      (await tenant.request('GET', `${rest}/notes`, { as: 'u1' })).list().length,
      2,
      'and its records return with it',
    )
  })

  t.test('A reload that would lose data or that has an invalid schema changes nothing', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, notes)
    await tenant.request('POST', `${rest}/notes`, { as: 'u1', body: { title: 'kept', rank: 1 } })
    const before = await tenant.rows('select name, definition, published, applied_at from applied_schemas')
    const narrower = notes.fields.filter(({ name }) => name !== 'rank')
    const retyped = notes.fields.map((field) => (field.name === 'rank' ? { ...field, type: 'string' } : field))
    for (const fields of [narrower, retyped]) {
      t.equal(
        (await tenant.request('PATCH', `${rest}/schemas?name=eq.notes`, { as: 'service', body: { fields } })).status,
        204,
      )
      same(t, await reload(tenant), 409, 'DESTRUCTIVE_SCHEMA_CHANGE', /notes\.rank/)
      t.same(await tenant.rows('select name, definition, published, applied_at from applied_schemas'), before)
      t.match((await tenant.request('GET', `${rest}/notes`, { as: 'u1' })).list(), [{ title: 'kept', rank: 1 }])
    }
    await tenant.request('PATCH', `${rest}/schemas?name=eq.notes`, { as: 'service', body: { fields: notes.fields } })

    const title = { name: 'title', type: 'string' }
    const bad: object[] = [
      { ...notes, name: 'Notes' },
      { ...notes, name: '1x' },
      { ...notes, name: 'a-b' },
      { ...notes, name: 'x'.repeat(64) },
      { ...notes, name: 'storage_objects' },
      { ...notes, name: '' },
      { ...notes, name: 'bad', fields: [] },
      { ...notes, name: 'bad', fields: 'all' },
      { ...notes, name: 'bad', fields: [{ name: 'a' }] },
      { ...notes, name: 'bad', fields: [{ name: 'a', type: 'text' }] },
      { ...notes, name: 'bad', fields: [title, title] },
      { ...notes, name: 'bad', fields: [{ ...title, requird: true }] },
      { ...notes, name: 'bad', fields: [{ name: 'a"; drop table schemas; --', type: 'string' }] },
      { ...notes, name: 'bad', fields: [{ name: 'tenant_id', type: 'string' }] },
      {
        ...notes,
        name: 'bad',
        fields: [
          { ...title, primary: true },
          { name: 'id', type: 'uuid', primary: true },
        ],
      },
      { ...notes, name: 'bad', fields: [{ ...title, required: 'yes' }] },
      { ...notes, name: 'bad', rls_policy: { type: 'ownership' } },
      { ...notes, name: 'bad', rls_policy: { type: 'all_users' } },
      { ...notes, name: 'bad', rls_policy: { type: 'ownership', owner_field: 'rank' } },
      { ...notes, name: 'bad', more: 1 },
      { fields: [title], rls_policy: { type: 'service' } },
    ]
    for (const schema of bad)
      t.equal((await addSchema(tenant, schema)).status, 400, JSON.stringify(schema).slice(0, 120))
    t.equal((await addSchema(tenant, notes)).status, 409, 'a name is unique')
    same(
      t,
      await tenant.request('POST', `${rest}/schemas`, { as: 'u1', body: { ...notes, name: 'mine' } }),
      403,
      '42501',
    )
    t.equal((await tenant.request('POST', `${rest}/schemas`, { body: { ...notes, name: 'mine' } })).status, 401)
    t.same((await tenant.request('GET', `${rest}/schemas`, { as: 'u1' })).list(), [], 'only the service sees schemas')
    t.match((await reload(tenant)).json(), { success: true, collections: ['notes'] })
  })

  t.test('Records are created, read, changed and deleted', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, notes)
    const made = await tenant.request('POST', `${rest}/notes`, { as: 'u1', body: { title: 'one', rank: 1.5 } })
    t.equal(made.status, 201)
    t.match(made.json(), { id: uuid, owner: 'u1', title: 'one', rank: 1.5 }, 'the user who creates a record owns it')
    const id = String(made.json()['id'])
    t.same(Object.keys(made.json()).sort(), ['id', 'owner', 'rank', 'title'], 'the fields of the schema and no others')
    t.same((await tenant.request('GET', `${rest}/notes/${id}`, { as: 'u1' })).json(), made.json())
    t.same((await tenant.request('PATCH', `${rest}/notes/${id}`, { as: 'u1', body: { rank: null } })).json(), {
      ...made.json(),
      rank: null,
    })
    t.same(
      (await tenant.request('PATCH', `${rest}/notes/${id}`, { as: 'u1', body: {} })).json(),
      { ...made.json(), rank: null },
      'an empty change',
    )
    same(t, await tenant.request('POST', `${rest}/notes`, { as: 'u1', body: { id, title: 'again' } }), 409, '23505')

    same(
      t,
      await tenant.request('POST', `${rest}/notes`, { as: 'u1', body: { rank: 1 } }),
      400,
      '23502',
      /"title" is required\.$/,
    )
    same(t, await tenant.request('POST', `${rest}/notes`, { as: 'u1', body: { title: null } }), 400, '22P02', /"title"/)
    same(
      t,
      await tenant.request('PATCH', `${rest}/notes/${id}`, { as: 'u1', body: { title: null } }),
      400,
      '22P02',
      /"title"/,
    )
    same(
      t,
      await tenant.request('POST', `${rest}/notes`, { as: 'u1', body: { title: 'x', tilte: 'y' } }),
      400,
      'PGRST204',
      /'tilte' column of 'notes'/,
    )
    same(
      t,
      await tenant.request('POST', `${rest}/notes`, { as: 'u1', body: { title: 'x', tenant_id: 'y' } }),
      400,
      'PGRST204',
      /'tenant_id' column of 'notes'/,
    )
    t.equal(
      (await tenant.request('POST', `${rest}/notes`, { as: 'u1', body: [{ title: 'x' }, { rank: 1 }] })).status,
      400,
      'several records are inserted together or not at all',
    )
    for (const body of ['"text"', '1', 'null', '[[]]', '{"title":', '{"__proto__": {}, "title": "x"}', '']) {
      const response = await tenant.request('POST', `${rest}/notes`, {
        as: 'u1',
        body,
        headers: { 'content-type': 'application/json' },
      })
      t.equal(response.status, 400, `${body}: ${response.text}`)
    }
    same(t, await tenant.request('GET', `${rest}/notes/${absent}`, { as: 'u1' }), 404, 'PGRST116')
    same(t, await tenant.request('PATCH', `${rest}/notes/${absent}`, { as: 'u1', body: { rank: 1 } }), 404, 'PGRST116')
    same(t, await tenant.request('DELETE', `${rest}/notes/${absent}`, { as: 'u1' }), 404, 'PGRST116')
    same(t, await tenant.request('GET', `${rest}/notes/no-uuid`, { as: 'u1' }), 400, '22P02')
    t.equal(
      (await tenant.request('PATCH', `${rest}/notes`, { as: 'u1', body: { rank: 1 } })).status,
      400,
      'a change of all records must be explicit',
    )
    t.equal(
      (await tenant.request('DELETE', `${rest}/notes`, { as: 'u1' })).status,
      400,
      'and so must a deletion of all records',
    )
    for (const [method, query] of [
      ['PATCH', 'limit=1'],
      ['DELETE', 'limit=1'],
      ['DELETE', 'offset=1'],
      ['PATCH', 'offset=1'],
    ] as const) {
      const response = await tenant.request(method, `${rest}/notes?title=eq.one&${query}`, {
        as: 'u1',
        ...(method === 'PATCH' ? { body: { rank: 7 } } : {}),
      })
      same(t, response, 400, 'PGRST100', /limit/)
    }
    same(
      t,
      await tenant.request('POST', `${rest}/notes?columns=titel`, { as: 'u1', body: { title: 'x' } }),
      400,
      'PGRST204',
      /'titel' column/,
    )
    t.same(
      await tenant.rows('select title, rank from notes'),
      [{ title: 'one', rank: null }],
      'no rejected record was stored',
    )
    t.equal((await tenant.request('DELETE', `${rest}/notes/${id}`, { as: 'u1' })).status, 200)
    same(t, await tenant.request('GET', `${rest}/notes/${id}`, { as: 'u1' }), 404, 'PGRST116')
  })

  t.test('As many records are created as were sent, and one that no index can contain is rejected', async (t) => {
    const tenant = await runtime.addTenant()
    const name = { name: 'name', type: 'string' }
    await publish(
      tenant,
      { ...notes, fields: [name] },
      { name: 'keyed', fields: [{ ...name, primary: true }], rls_policy: { type: 'service' } },
    )
    const list = (body: string) =>
      tenant.request('POST', `${rest}/notes?columns=name`, {
        as: 'u1',
        body,
        headers: { 'content-type': 'application/json' },
      })
    for (const [body, made] of [
      ['{}', 1],
      ['[]', 0],
      ['[{}]', 1],
      ['[{},{},{}]', 3],
      ['[{"name":"a"},{}]', 2],
    ] as const) {
      const before = Number((await tenant.rows('select count(*) as n from notes'))[0]?.['n'])
      t.equal((await list(body)).status, 201, body)
      t.same(await tenant.rows('select count(*)::int as n from notes'), [{ n: before + made }], `${body} makes ${made}`)
    }
    t.same((await tenant.request('GET', `${rest}/notes?owner=eq.u1`, { as: 'u1' })).list().length, 7)
    const long = randomBytes(20_000).toString('base64')
    same(t, await tenant.request('POST', `${rest}/keyed`, { as: 'service', body: { name: long } }), 400, '54000')
    same(t, await tenant.request('POST', `${rest}/notes`, { as: 'service', body: { owner: long } }), 400, '54000')
  })

  t.same(runtime.errors, [], 'no internal error occurred')
})
