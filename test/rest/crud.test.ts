// From a schema to its endpoints (specification 2.3, 4.3, 5.8, 9.2): nothing before the reload, then records under ownership,
// through plain HTTP and through an unmodified client.
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { startRuntime, type Answer, type TestTenant } from '#test/support/runtime.ts'

const rest = '/rest/v1'
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const absent = '00000000-0000-4000-8000-000000000000'

const notes = {
  name: 'notes',
  fields: [
    { name: 'id', type: 'uuid', primary: true },
    { name: 'owner', type: 'string' },
    { name: 'title', type: 'string', required: true },
    { name: 'rank', type: 'number' },
  ],
  rls_policy: { type: 'ownership', owner_field: 'owner' },
}

function same(t: Test, answer: Answer, status: number, code: string, message: RegExp = /./) {
  t.equal(answer.status, status, answer.text)
  t.match(answer.json(), { statusCode: String(status), error: String, message, code })
}

const addSchema = (tenant: TestTenant, schema: object) =>
  tenant.ask('POST', `${rest}/schemas`, { as: 'service', body: schema })
const reload = (tenant: TestTenant) => tenant.ask('POST', '/admin/reload-schemas', { as: 'service' })

async function publish(tenant: TestTenant, ...schemas: object[]): Promise<void> {
  for (const schema of schemas) {
    const answer = await addSchema(tenant, schema)
    if (answer.status !== 201) throw new Error(answer.text)
  }
  const answer = await reload(tenant)
  if (answer.status !== 200) throw new Error(answer.text)
}

t.test('the generated interface', async (t) => {
  const runtime = await startRuntime(t)

  t.test('follows schemas at a reload, and never before', async (t) => {
    const tenant = await runtime.addTenant()
    const neighbour = await runtime.addTenant({ name: 'neighbour' })
    same(t, await tenant.ask('GET', `${rest}/notes`, { as: 'u1' }), 404, 'PGRST205')
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
        await tenant.ask(method, `${rest}/${path}`, { as: 'u1', ...(body === undefined ? {} : { body }) }),
        404,
        'PGRST205',
      )
    }
    t.match((await reload(tenant)).json(), { success: true, collections: ['notes'] })
    t.same((await tenant.ask('GET', `${rest}/notes`, { as: 'u1' })).list(), [])
    same(t, await neighbour.ask('GET', `${rest}/notes`, { as: 'u1' }), 404, 'PGRST205')
    same(t, await tenant.ask('GET', `${rest}/note`, { as: 'u1' }), 404, 'PGRST205')
    t.equal((await tenant.ask('POST', `${rest}/notes`, { as: 'u1', body: { title: 'kept' } })).status, 201)

    const wider = [...notes.fields, { name: 'done', type: 'boolean' }]
    t.equal(
      (await tenant.ask('PATCH', `${rest}/schemas?name=eq.notes`, { as: 'service', body: { fields: wider } })).status,
      204,
    )
    same(
      t,
      await tenant.ask('POST', `${rest}/notes`, { as: 'u1', body: { title: 'x', done: true } }),
      400,
      'PGRST204',
      /"done"/,
    )
    t.notOk('done' in ((await tenant.ask('GET', `${rest}/notes`, { as: 'u1' })).list()[0] ?? {}))
    t.equal((await reload(tenant)).status, 200)
    t.equal((await tenant.ask('POST', `${rest}/notes`, { as: 'u1', body: { title: 'y', done: true } })).status, 201)
    t.same((await tenant.ask('GET', `${rest}/notes?select=title,done&order=title`, { as: 'u1' })).list(), [
      { title: 'kept', done: null },
      { title: 'y', done: true },
    ])

    t.equal((await tenant.ask('DELETE', `${rest}/schemas?name=eq.notes`, { as: 'service' })).status, 204)
    t.equal(
      (await tenant.ask('GET', `${rest}/notes`, { as: 'u1' })).list().length,
      2,
      'a deleted schema is served until the reload',
    )
    // As a restart does: the registry is read anew.
    tenant.change({})
    t.equal((await tenant.ask('GET', `${rest}/notes`, { as: 'u1' })).list().length, 2, 'and a restart is no reload')
    t.equal((await reload(tenant)).status, 200)
    same(t, await tenant.ask('GET', `${rest}/notes`, { as: 'u1' }), 404, 'PGRST205')
    await publish(tenant, { ...notes, fields: wider })
    t.equal(
      (await tenant.ask('GET', `${rest}/notes`, { as: 'u1' })).list().length,
      2,
      'and its records come back with it',
    )
  })

  t.test('is not changed by a reload that would lose data, nor by a schema that is none', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, notes)
    await tenant.ask('POST', `${rest}/notes`, { as: 'u1', body: { title: 'kept', rank: 1 } })
    const before = await tenant.rows('select name, definition, published, applied_at from applied_schemas')
    const narrower = notes.fields.filter(({ name }) => name !== 'rank')
    const retyped = notes.fields.map((field) => (field.name === 'rank' ? { ...field, type: 'string' } : field))
    for (const fields of [narrower, retyped]) {
      t.equal(
        (await tenant.ask('PATCH', `${rest}/schemas?name=eq.notes`, { as: 'service', body: { fields } })).status,
        204,
      )
      same(t, await reload(tenant), 409, 'DESTRUCTIVE_SCHEMA_CHANGE', /notes\.rank/)
      t.same(await tenant.rows('select name, definition, published, applied_at from applied_schemas'), before)
      t.match((await tenant.ask('GET', `${rest}/notes`, { as: 'u1' })).list(), [{ title: 'kept', rank: 1 }])
    }
    await tenant.ask('PATCH', `${rest}/schemas?name=eq.notes`, { as: 'service', body: { fields: notes.fields } })

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
      { ...notes, name: 'bad', rls_policy: { type: 'everyone' } },
      { ...notes, name: 'bad', rls_policy: { type: 'ownership', owner_field: 'rank' } },
      { ...notes, name: 'bad', more: 1 },
      { fields: [title], rls_policy: { type: 'service' } },
    ]
    for (const schema of bad)
      t.equal((await addSchema(tenant, schema)).status, 400, JSON.stringify(schema).slice(0, 120))
    t.equal((await addSchema(tenant, notes)).status, 409, 'a name is taken once')
    same(t, await tenant.ask('POST', `${rest}/schemas`, { as: 'u1', body: { ...notes, name: 'mine' } }), 403, '42501')
    t.equal((await tenant.ask('POST', `${rest}/schemas`, { body: { ...notes, name: 'mine' } })).status, 401)
    t.same((await tenant.ask('GET', `${rest}/schemas`, { as: 'u1' })).list(), [], 'only the service sees schemas')
    t.match((await reload(tenant)).json(), { success: true, collections: ['notes'] })
  })

  t.test('makes, shows, changes and deletes records', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, notes)
    const made = await tenant.ask('POST', `${rest}/notes`, { as: 'u1', body: { title: 'one', rank: 1.5 } })
    t.equal(made.status, 201)
    t.match(made.json(), { id: uuid, owner: 'u1', title: 'one', rank: 1.5 }, 'whoever makes it owns it')
    const id = String(made.json()['id'])
    t.same(Object.keys(made.json()).sort(), ['id', 'owner', 'rank', 'title'], 'the fields of the schema and no others')
    t.same((await tenant.ask('GET', `${rest}/notes/${id}`, { as: 'u1' })).json(), made.json())
    t.same((await tenant.ask('PATCH', `${rest}/notes/${id}`, { as: 'u1', body: { rank: null } })).json(), {
      ...made.json(),
      rank: null,
    })
    t.same(
      (await tenant.ask('PATCH', `${rest}/notes/${id}`, { as: 'u1', body: {} })).json(),
      { ...made.json(), rank: null },
      'a change of nothing',
    )
    same(t, await tenant.ask('POST', `${rest}/notes`, { as: 'u1', body: { id, title: 'again' } }), 409, '23505')

    same(
      t,
      await tenant.ask('POST', `${rest}/notes`, { as: 'u1', body: { rank: 1 } }),
      400,
      '23502',
      /"title" is required/,
    )
    same(t, await tenant.ask('POST', `${rest}/notes`, { as: 'u1', body: { title: null } }), 400, '22P02', /"title"/)
    same(
      t,
      await tenant.ask('PATCH', `${rest}/notes/${id}`, { as: 'u1', body: { title: null } }),
      400,
      '22P02',
      /"title"/,
    )
    same(
      t,
      await tenant.ask('POST', `${rest}/notes`, { as: 'u1', body: { title: 'x', tilte: 'y' } }),
      400,
      'PGRST204',
      /"tilte"/,
    )
    same(
      t,
      await tenant.ask('POST', `${rest}/notes`, { as: 'u1', body: { title: 'x', tenant_id: 'y' } }),
      400,
      'PGRST204',
      /"tenant_id"/,
    )
    t.equal(
      (await tenant.ask('POST', `${rest}/notes`, { as: 'u1', body: [{ title: 'x' }, { rank: 1 }] })).status,
      400,
      'of several all or none',
    )
    for (const body of ['"text"', '1', 'null', '[[]]', '{"title":', '{"__proto__": {}, "title": "x"}', '']) {
      const answer = await tenant.ask('POST', `${rest}/notes`, {
        as: 'u1',
        body,
        headers: { 'content-type': 'application/json' },
      })
      t.equal(answer.status, 400, `${body}: ${answer.text}`)
    }
    same(t, await tenant.ask('GET', `${rest}/notes/${absent}`, { as: 'u1' }), 404, 'PGRST116')
    same(t, await tenant.ask('PATCH', `${rest}/notes/${absent}`, { as: 'u1', body: { rank: 1 } }), 404, 'PGRST116')
    same(t, await tenant.ask('DELETE', `${rest}/notes/${absent}`, { as: 'u1' }), 404, 'PGRST116')
    same(t, await tenant.ask('GET', `${rest}/notes/no-uuid`, { as: 'u1' }), 400, '22P02')
    t.equal(
      (await tenant.ask('PATCH', `${rest}/notes`, { as: 'u1', body: { rank: 1 } })).status,
      400,
      'a change of all has to say so',
    )
    t.equal((await tenant.ask('DELETE', `${rest}/notes`, { as: 'u1' })).status, 400, 'and so has the deletion of all')
    for (const [method, query] of [
      ['PATCH', 'limit=1'],
      ['DELETE', 'limit=1'],
      ['DELETE', 'offset=1'],
      ['PATCH', 'offset=1'],
    ] as const) {
      const answer = await tenant.ask(method, `${rest}/notes?title=eq.one&${query}`, {
        as: 'u1',
        ...(method === 'PATCH' ? { body: { rank: 7 } } : {}),
      })
      same(t, answer, 400, 'PGRST100', /limit/)
    }
    same(
      t,
      await tenant.ask('POST', `${rest}/notes?columns=titel`, { as: 'u1', body: { title: 'x' } }),
      400,
      'PGRST204',
      /"titel"/,
    )
    t.same(
      await tenant.rows('select title, rank from notes'),
      [{ title: 'one', rank: null }],
      'nothing of what was refused was stored',
    )
    t.equal((await tenant.ask('DELETE', `${rest}/notes/${id}`, { as: 'u1' })).status, 200)
    same(t, await tenant.ask('GET', `${rest}/notes/${id}`, { as: 'u1' }), 404, 'PGRST116')
  })

  t.test('makes as many records as were sent, and refuses one that no index can hold', async (t) => {
    const tenant = await runtime.addTenant()
    const name = { name: 'name', type: 'string' }
    await publish(
      tenant,
      { ...notes, fields: [name] },
      { name: 'keyed', fields: [{ ...name, primary: true }], rls_policy: { type: 'service' } },
    )
    const list = (body: string) =>
      tenant.ask('POST', `${rest}/notes`, { as: 'u1', body, headers: { 'content-type': 'application/json' } })
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
    t.same((await tenant.ask('GET', `${rest}/notes?owner=eq.u1`, { as: 'u1' })).list().length, 7)
    const long = randomBytes(20_000).toString('base64')
    same(t, await tenant.ask('POST', `${rest}/keyed`, { as: 'service', body: { name: long } }), 400, '54000')
    same(t, await tenant.ask('POST', `${rest}/notes`, { as: 'service', body: { owner: long } }), 400, '54000')
  })

  t.test('takes of each type what it is, and gives it back as it was', async (t) => {
    const tenant = await runtime.addTenant()
    const types = ['uuid', 'string', 'number', 'boolean', 'datetime', 'json']
    await publish(tenant, {
      name: 'things',
      fields: types.map((type) => ({ name: `a_${type}`, type })),
      rls_policy: { type: 'service' },
    })
    const values: Record<string, { good: unknown[]; bad: unknown[] }> = {
      uuid: {
        good: ['0b1c2d3e-4f5a-4b6c-8d7e-9f0a1b2c3d4e'],
        bad: ['', 'x', '0b1c2d3e4f5a4b6c8d7e9f0a1b2c3d4e', '{0b1c2d3e-4f5a-4b6c-8d7e-9f0a1b2c3d4e}', 1, true, {}],
      },
      string: {
        good: ['', 'a', "'; drop table things; --", 'ä\u0308💩\u202e', '\n\t\\', 'null', 'x'.repeat(1_000_000)],
        bad: [1, false, {}, [], 'a\0b', '\ud800', 'x'.repeat(1_000_001)],
      },
      number: { good: [0, 1, -1.5, 9_007_199_254_740_991, 1e300, 5e-324, 0.1], bad: ['1', '', true, {}, []] },
      boolean: { good: [true, false], bad: [0, 1, 'true', 'yes', ''] },
      datetime: {
        good: ['2024-02-29T12:34:56.789Z', '2024-02-29T12:34:56+02:00', '1999-12-31', '0001-01-01T00:00:00Z'],
        bad: [
          '',
          'now',
          'yesterday',
          '2024-13-01T00:00:00Z',
          '2023-02-29T00:00:00Z',
          '2024-02-29 25:00',
          '1.2.2024',
          'infinity',
          1_700_000_000,
          true,
        ],
      },
      json: {
        good: [{}, [], { a: [1, null, 'x', { b: false }] }, [[[]]]],
        bad: ['{}', 1, true, { a: '\0' }, { a: '\udfff' }],
      },
    }
    for (const type of types) {
      const field = `a_${type}`
      for (const value of values[type]?.good ?? []) {
        const shown = JSON.stringify(value).slice(0, 60)
        const made = await tenant.ask('POST', `${rest}/things`, { as: 'service', body: { [field]: value } })
        t.equal(made.status, 201, `${type} ${shown}`)
        const back = made.json()[field]
        if (type === 'datetime')
          t.equal(Date.parse(String(back)), Date.parse(String(value)), `${type} ${shown} is the same moment`)
        else t.same(back, value, `${type} ${shown} comes back`)
        const id = String(made.json()['id'])
        t.equal(
          (await tenant.ask('PATCH', `${rest}/things/${id}`, { as: 'service', body: { [field]: null } })).json()[field],
          null,
          'null where it is not required',
        )
        t.equal(
          (await tenant.ask('PATCH', `${rest}/things/${id}`, { as: 'service', body: { [field]: value } })).status,
          200,
        )
      }
      for (const value of values[type]?.bad ?? []) {
        const answer = await tenant.ask('POST', `${rest}/things`, { as: 'service', body: { [field]: value } })
        t.equal(answer.status, 400, `${type} ${JSON.stringify(value).slice(0, 60)}: ${answer.text.slice(0, 200)}`)
      }
    }
    const infinite = await tenant.ask('POST', `${rest}/things`, {
      as: 'service',
      body: '{"a_number": 1e999}',
      headers: { 'content-type': 'application/json' },
    })
    t.equal(infinite.status, 400, infinite.text)
    const good = Object.values(values).flatMap(({ good }) => good)
    t.equal(
      (await tenant.rows('select count(*)::int as n from things'))[0]?.['n'],
      good.length,
      'what was refused was not stored',
    )
  })

  t.test("shows each user the own records; another's are neither read nor changed nor counted", async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, notes)
    const [one, two] = [tenant.client('u1'), tenant.client('u2')]
    for (const [client, titles] of [
      [one, ['a', 'b', 'c']],
      [two, ['d', 'e']],
    ] as const) {
      const { error } = await client.from('notes').insert(titles.map((title, rank) => ({ title, rank })))
      t.equal(error, null)
    }
    const theirs = (await tenant.rows("select id::text, title from notes where owner = 'u2' order by title")).map(
      (row) => String(row['id']),
    )
    const stored = () => tenant.rows("select id::text, owner, title, rank from notes where owner = 'u2' order by title")
    const before = await stored()
    t.same(
      before.map(({ title }) => title),
      ['d', 'e'],
    )

    const { data, count } = await one.from('notes').select('title', { count: 'exact' }).order('title')
    t.same([data, count], [[{ title: 'a' }, { title: 'b' }, { title: 'c' }], 3])
    t.equal((await one.from('notes').select('*', { count: 'exact', head: true })).count, 3)
    t.equal((await one.from('notes').select('*', { count: 'exact', head: true }).eq('owner', 'u2')).count, 0)
    t.same((await one.from('notes').select().in('id', theirs)).data, [])
    t.match(
      await one
        .from('notes')
        .select()
        .eq('id', theirs[0] ?? '')
        .single(),
      { data: null, error: { code: 'PGRST116' } },
    )
    t.same((await one.from('notes').update({ title: 'taken' }).in('id', theirs).select()).data, [])
    t.same(
      (await one.from('notes').update({ rank: 9 }).gte('rank', 0).select()).data?.length,
      3,
      'a change of all is one of the own',
    )
    t.same((await one.from('notes').delete().in('id', theirs).select()).data, [])
    t.match(await one.from('notes').insert({ title: 'forged', owner: 'u2' }), { error: { code: '42501' } })
    t.match(await one.from('notes').update({ owner: 'u2' }).eq('title', 'a'), { error: { code: '42501' } })
    t.match(await one.from('notes').insert({ title: 'x', id: theirs[0] }), { error: { code: '23505' } })
    for (const id of theirs) {
      const hidden = await tenant.ask('GET', `${rest}/notes/${id}`, { as: 'u1' })
      const nowhere = await tenant.ask('GET', `${rest}/notes/${absent}`, { as: 'u1' })
      t.same([hidden.status, hidden.json()], [404, nowhere.json()], 'told from an absent one by nothing')
      same(t, await tenant.ask('PATCH', `${rest}/notes/${id}`, { as: 'u1', body: { title: 'taken' } }), 404, 'PGRST116')
      same(t, await tenant.ask('DELETE', `${rest}/notes/${id}`, { as: 'u1' }), 404, 'PGRST116')
    }
    t.match(
      (
        await tenant.ask('GET', `${rest}/notes?id=in.(${theirs.join(',')})`, {
          as: 'u1',
          headers: { prefer: 'count=exact' },
        })
      ).headers,
      { 'content-range': '*/0' },
    )

    const nobody = tenant.client(undefined)
    t.same((await nobody.from('notes').select()).data, [])
    t.match(await nobody.from('notes').insert({ title: 'x' }), { status: 401, error: { code: '42501' } })
    t.same((await nobody.from('notes').update({ title: 'x' }).gte('rank', 0).select()).data, [])
    t.same((await nobody.from('notes').delete().gte('rank', 0).select()).data, [])
    t.same(await stored(), before, "the other's records are as they were")

    const service = tenant.client('service')
    t.equal((await service.from('notes').select('*', { count: 'exact', head: true })).count, 5, 'the service sees all')
    t.match(await service.from('notes').insert({ title: 'for u2', owner: 'u2' }).select().single(), {
      data: { owner: 'u2' },
      error: null,
    })
    t.equal((await two.from('notes').select('*', { count: 'exact', head: true })).count, 3)
    t.match(await one.from('notes').delete().neq('title', ''), { error: null, status: 204 })
    t.same(
      await tenant.rows('select owner, count(*)::int as n from notes group by owner'),
      [{ owner: 'u2', n: 3 }],
      'a deletion of all is one of the own',
    )
  })

  t.test('filters, orders and pages as clients ask', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, notes)
    const client = tenant.client('u1')
    await client.from('notes').insert(
      ['a', 'b', 'c', 'd', 'e,f', 'g"h', 'i(j)', "k'l"].map((title, rank) => ({
        title,
        rank: rank === 3 ? null : rank,
      })),
    )
    const titles = async (query: PromiseLike<{ data: Record<string, unknown>[] | null; error: unknown }>) => {
      const { data, error } = await query
      if (error !== null) throw new Error('refused', { cause: error })
      return data?.map(({ title }) => title)
    }
    const all = () => client.from('notes').select('title').order('title')
    t.same(await titles(all().gt('rank', 4)), ['g"h', 'i(j)', "k'l"])
    t.same(await titles(all().lte('rank', 1)), ['a', 'b'])
    t.same(await titles(all().is('rank', null)), ['d'])
    t.same(await titles(all().not('rank', 'is', null).lt('rank', 2)), ['a', 'b'])
    t.same(await titles(all().in('title', ['e,f', 'g"h', 'i(j)', "k'l", 'none'])), ['e,f', 'g"h', 'i(j)', "k'l"])
    t.same(await titles(all().ilike('title', '%F')), ['e,f'])
    t.same(await titles(all().neq('title', 'a').lt('title', 'c')), ['b'])
    t.same(await titles(client.from('notes').select().order('rank', { ascending: false, nullsFirst: true }).limit(2)), [
      'd',
      "k'l",
    ])
    t.same(await titles(all().range(2, 3)), ['c', 'd'])
    t.match(await client.from('notes').select('*', { count: 'exact' }).range(100, 110), {
      status: 416,
      error: { code: 'PGRST103' },
    })
    t.match(await client.from('notes').select('nothing'), { status: 400, error: { code: '42703' } })
    t.match(await client.from('nowhere').select(), { status: 404, error: { code: 'PGRST205' } })
  })

  t.same(runtime.problems, [], 'none of it was an error of ours')
})
