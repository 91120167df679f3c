// Records of a generated interface: values of each type, owners, and the filters, orders and pages that clients use.
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'
import { absent, notes, publish, rest, same } from './support/schemas.ts'

t.test('The generated interface', async (t) => {
  const runtime = await startRuntime(t)

  t.test('Each type accepts its values and returns them unchanged', async (t) => {
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
        const made = await tenant.request('POST', `${rest}/things`, { as: 'service', body: { [field]: value } })
        t.equal(made.status, 201, `${type} ${shown}`)
        const back = made.json()[field]
        if (type === 'datetime')
          t.equal(Date.parse(String(back)), Date.parse(String(value)), `${type} ${shown} is the same moment`)
        else t.same(back, value, `${type} ${shown} is returned unchanged`)
        const id = String(made.json()['id'])
        t.equal(
          (await tenant.request('PATCH', `${rest}/things/${id}`, { as: 'service', body: { [field]: null } })).json()[
            field
          ],
          null,
          'null in an optional field',
        )
        t.equal(
          (await tenant.request('PATCH', `${rest}/things/${id}`, { as: 'service', body: { [field]: value } })).status,
          200,
        )
      }
      for (const value of values[type]?.bad ?? []) {
        const response = await tenant.request('POST', `${rest}/things`, { as: 'service', body: { [field]: value } })
        t.equal(response.status, 400, `${type} ${JSON.stringify(value).slice(0, 60)}: ${response.text.slice(0, 200)}`)
      }
    }
    const infinite = await tenant.request('POST', `${rest}/things`, {
      as: 'service',
      body: '{"a_number": 1e999}',
      headers: { 'content-type': 'application/json' },
    })
    t.equal(infinite.status, 400, infinite.text)
    const good = Object.values(values).flatMap(({ good }) => good)
    t.equal(
      (await tenant.rows('select count(*)::int as n from things'))[0]?.['n'],
      good.length,
      'no rejected value was stored',
    )
  })

  t.test("Each user sees their own records; another's are neither read nor changed nor counted", async (t) => {
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
      'a change of all records changes only their own',
    )
    t.same((await one.from('notes').delete().in('id', theirs).select()).data, [])
    t.match(await one.from('notes').insert({ title: 'forged', owner: 'u2' }), { error: { code: '42501' } })
    t.match(await one.from('notes').update({ owner: 'u2' }).eq('title', 'a'), { error: { code: '42501' } })
    t.match(await one.from('notes').insert({ title: 'x', id: theirs[0] }), { error: { code: '23505' } })
    for (const id of theirs) {
      const hidden = await tenant.request('GET', `${rest}/notes/${id}`, { as: 'u1' })
      const nowhere = await tenant.request('GET', `${rest}/notes/${absent}`, { as: 'u1' })
      t.same(
        [hidden.status, hidden.json()],
        [404, nowhere.json()],
        'a hidden and an absent record have the same response',
      )
      same(
        t,
        await tenant.request('PATCH', `${rest}/notes/${id}`, { as: 'u1', body: { title: 'taken' } }),
        404,
        'PGRST116',
      )
      same(t, await tenant.request('DELETE', `${rest}/notes/${id}`, { as: 'u1' }), 404, 'PGRST116')
    }
    t.match(
      (
        await tenant.request('GET', `${rest}/notes?id=in.(${theirs.join(',')})`, {
          as: 'u1',
          headers: { prefer: 'count=exact' },
        })
      ).headers,
      { 'content-range': '*/0' },
    )

    const anonymous = tenant.client(undefined)
    t.same((await anonymous.from('notes').select()).data, [])
    t.match(await anonymous.from('notes').insert({ title: 'x' }), { status: 401, error: { code: '42501' } })
    t.same((await anonymous.from('notes').update({ title: 'x' }).gte('rank', 0).select()).data, [])
    t.same((await anonymous.from('notes').delete().gte('rank', 0).select()).data, [])
    t.same(await stored(), before, "the other user's records are unchanged")

    const service = tenant.client('service')
    t.equal(
      (await service.from('notes').select('*', { count: 'exact', head: true })).count,
      5,
      'the service sees all records',
    )
    t.match(await service.from('notes').insert({ title: 'for u2', owner: 'u2' }).select().single(), {
      data: { owner: 'u2' },
      error: null,
    })
    t.equal((await two.from('notes').select('*', { count: 'exact', head: true })).count, 3)
    t.match(await one.from('notes').delete().neq('title', ''), { error: null, status: 204 })
    t.same(
      await tenant.rows('select owner, count(*)::int as n from notes group by owner'),
      [{ owner: 'u2', n: 3 }],
      'a deletion of all records deletes only their own',
    )
  })

  t.test('Clients filter, order and page records', async (t) => {
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
      if (error !== null) throw new Error('rejected', { cause: error })
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

  t.same(runtime.errors, [], 'no internal error occurred')
})
