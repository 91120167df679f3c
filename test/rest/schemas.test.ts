// Attributes of fields: the interface and Postgres reject the same values, and both name the field.
import t from 'tap'
import { query } from '#test/support/postgres.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { addSchema, insert, publish, reload, rest, same, service } from './support/schemas.ts'

const name = { name: 'name', type: 'string' }

t.test('Attributes of fields', async (t) => {
  const runtime = await startRuntime(t)

  t.test('Postgres enforces the attributes for every writer', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, {
      name: 'things',
      rls_policy: service,
      fields: [
        { name: 'text', type: 'string', max_length: 3 },
        { name: 'plain', type: 'string' },
        { name: 'rank', type: 'number', minimum: -1, maximum: 1e21 },
        { name: 'any', type: 'number' },
        { name: 'kind', type: 'string', enum: ['a', "it's \\ odd", 'ä💩'] },
        { name: 'level', type: 'number', enum: [1, 2.5, -3] },
        { name: 'code', type: 'string', unique: true },
        { name: 'at', type: 'datetime' },
        { name: 'more', type: 'json' },
      ],
    })
    await insert(tenant, 'things', { code: 'taken' })
    const cases: [field: string, good: unknown[], bad: unknown[], code: string, message: RegExp][] = [
      [
        'text',
        ['', 'abc', '💩💩💩', 'a\u0308b'],
        ['abcd', '💩💩💩💩'],
        '23514',
        /^Field "text" is longer than 3 characters\.$/,
      ],
      [
        'plain',
        ['💩'.repeat(1_000_000)],
        ['💩'.repeat(1_000_001)],
        '23514',
        /^Field "plain" is longer than 1000000 characters\.$/,
      ],
      ['rank', [-1, 0, 1e21], [-1.001, 1.1e21], '23514', /^Field "rank" must be between -1 and 1e\+21\.$/],
      ['kind', ['a', "it's \\ odd", 'ä💩'], ['', 'A', 'b'], '23514', /^Field "kind" must be one of "a", /],
      ['level', [1, 2.5, -3], [0, 2], '23514', /^Field "level" must be one of 1, 2.5, -3\.$/],
    ]
    const sql = (text: string, values: unknown[]) => query(tenant.home.adminUrl, text, values)
    for (const [field, good, bad, code, message] of cases) {
      for (const value of good) {
        const made = await insert(tenant, 'things', { [field]: value })
        t.same(made[field], value)
        t.same(
          (await sql(`insert into things (${field}) values ($1) returning ${field} as v`, [value]))[0]?.['v'],
          value,
        )
      }
      for (const value of bad) {
        same(
          t,
          await tenant.request('POST', `${rest}/things`, { as: 'service', body: { [field]: value } }),
          400,
          code,
          message,
        )
        same(
          t,
          await tenant.request('PATCH', `${rest}/things?code=eq.taken`, { as: 'service', body: { [field]: value } }),
          400,
          code,
          message,
        )
        await t.rejects(sql(`insert into things (${field}) values ($1)`, [value]), {
          code,
          constraint: new RegExp(`^things_${field}_`),
        })
      }
    }
    for (const [field, value] of [
      ['any', 'NaN'],
      ['any', 'infinity'],
      ['any', '-infinity'],
      ['at', 'infinity'],
      ['more', '1'],
      ['more', 'null'],
    ] as const) {
      await t.rejects(
        sql(`insert into things ("${field}") values ($1)`, [value]),
        { code: '23514' },
        `${field} ${value}`,
      )
    }
    same(
      t,
      await tenant.request('POST', `${rest}/things`, { as: 'service', body: { code: 'taken' } }),
      409,
      '23505',
      /^Field "code" has the same value as another record\.$/,
    )
    await t.rejects(sql("insert into things (code) values ('taken')", []), { code: '23505' })
    t.same(await tenant.rows("select count(*)::int as n from things where code = 'taken'"), [{ n: 1 }])
    t.equal(
      (await tenant.rows('select count(*)::int as n from things where code is null'))[0]?.['n'],
      2 * cases.reduce((sum, [, good]) => sum + good.length, 0),
      'nulls are not duplicates',
    )
  })

  t.test('A violated rule that the request did not show is reported with its field', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, {
      name: 'things',
      fields: [
        { name: 'rank', type: 'number', minimum: 1 },
        { name: 'x'.repeat(63), type: 'number', maximum: 5 },
      ],
      rls_policy: service,
    })
    // A trigger of the tenant changes the value after the check of the interface.
    await query(
      tenant.home.adminUrl,
      `create function lower_rank() returns trigger language plpgsql as $$ begin new.rank := 0; return new; end $$`,
    )
    await query(
      tenant.home.adminUrl,
      `create trigger lower_rank before insert on things for each row execute function lower_rank()`,
    )
    same(
      t,
      await tenant.request('POST', `${rest}/things`, { as: 'service', body: { rank: 4 } }),
      400,
      '23514',
      /^Field "rank" must be at least 1\.$/,
    )
    await query(
      tenant.home.adminUrl,
      `create or replace function lower_rank() returns trigger language plpgsql
        as $$ begin new."${'x'.repeat(63)}" := 6; return new; end $$`,
    )
    same(
      t,
      await tenant.request('POST', `${rest}/things`, { as: 'service', body: { rank: 4 } }),
      400,
      '23514',
      /^Field "x{63}" must be at most 5\.$/,
    )
    t.same(await tenant.rows('select count(*)::int as n from things'), [{ n: 0 }])
  })

  t.test('A record receives the default of an omitted field', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, {
      name: 'things',
      rls_policy: service,
      fields: [
        { name: 'text', type: 'string', required: true, default: "it's \\ \n 💩" },
        { name: 'rank', type: 'number', default: -1.5e-7 },
        { name: 'done', type: 'boolean', default: false },
        { name: 'at', type: 'datetime', default: '2024-02-29T12:00' },
        { name: 'made', type: 'datetime', required: true, default: 'now()' },
        { name: 'tag', type: 'uuid', default: 'gen_random_uuid()' },
        { name: 'fixed', type: 'uuid', default: '0b1c2d3e-4f5a-4b6c-8d7e-9f0a1b2c3d4e' },
        { name: 'more', type: 'json', default: { a: ["'", '\\'] } },
        { name: 'kind', type: 'string', enum: ['x', 'y'], default: 'y' },
      ],
    })
    const [one, two] = [await insert(tenant, 'things', {}), await insert(tenant, 'things', { text: 'own', rank: null })]
    t.match(one, {
      text: "it's \\ \n 💩",
      rank: -1.5e-7,
      done: false,
      at: '2024-02-29T12:00:00+00:00',
      fixed: '0b1c2d3e-4f5a-4b6c-8d7e-9f0a1b2c3d4e',
      more: { a: ["'", '\\'] },
      kind: 'y',
    })
    t.match(two, { text: 'own', rank: null })
    t.not(one['tag'], two['tag'], 'each record receives its own uuid')
    t.ok(Math.abs(Date.parse(String(one['made'])) - Date.now()) < 600_000)
    same(
      t,
      await tenant.request('POST', `${rest}/things`, { as: 'service', body: { text: null } }),
      400,
      '22P02',
      /"text" must not be null/,
    )
  })

  t.test('Attributes create indexes, also for references', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(
      tenant,
      { name: 'authors', fields: [name], rls_policy: service },
      {
        name: 'books',
        rls_policy: service,
        fields: [
          { ...name, index: true },
          { name: 'more', type: 'json', index: true },
          { name: 'author', type: 'uuid', references: 'authors' },
        ],
      },
    )
    const indexed = await tenant.rows(
      "select indexdef from pg_indexes where schemaname = $1 and tablename = 'books' order by 1",
      [tenant.home.schema],
    )
    t.same(indexed.map((row) => String(row['indexdef']).replace(/^.* USING /, '')).sort(), [
      'btree (author)',
      'btree (id)',
      'btree (name)',
      'gin (more jsonb_path_ops)',
    ])
  })

  t.test('Invalid attributes are rejected with their position, before anything is stored', async (t) => {
    const tenant = await runtime.addTenant()
    const field = (more: object, type = 'string') => ({
      name: 'bad',
      fields: [{ name: 'a', type, ...more }],
      rls_policy: service,
    })
    const bad: [object, RegExp][] = [
      [field({ max_length: 0 }), /fields\[0\]\.max_length/],
      [field({ max_length: 1.5 }), /max_length/],
      [field({ max_length: 1_000_001 }), /max_length/],
      [field({ max_length: 5 }, 'uuid'), /max_length/],
      [field({ minimum: 1 }), /minimum/],
      [field({ minimum: '1' }, 'number'), /minimum/],
      [field({ minimum: 2, maximum: 1 }, 'number'), /minimum/],
      [field({ unique: 1 }), /unique/],
      [field({ unique: true }, 'json'), /unique/],
      [field({ unique: true }, 'boolean'), /unique/],
      [field({ index: 'yes' }), /index/],
      [field({ enum: [] }), /enum/],
      [field({ enum: 'a' }), /enum/],
      [field({ enum: ['a', 'a'] }), /twice/],
      [field({ enum: ['a', 1] }), /enum\[1\]/],
      [field({ enum: [true] }, 'boolean'), /enum/],
      [field({ enum: ['abc'], max_length: 2 }), /enum\[0\] is longer/],
      [field({ enum: ['\0'] }), /enum\[0\]/],
      [field({ default: 1 }), /default must be a string/],
      [field({ default: null }), /default/],
      [field({ default: 'b', enum: ['a'] }), /default must be one of/],
      [field({ default: 9, maximum: 5 }, 'number'), /default/],
      [field({ default: 'now()' }, 'uuid'), /default must be a UUID, or "gen_random_uuid\(\)"/],
      [field({ default: 'clock_timestamp()' }, 'datetime'), /or "now\(\)"/],
      [field({ references: 5 }), /references/],
      [field({ references: { collection: 'x', on_delete: 'never' } }), /on_delete/],
      [field({ references: { collection: 'x', more: 1 } }), /references\.more is unknown/],
      [field({ references: 'x' }, 'json'), /references/],
      [field({ references: { collection: 'x', on_delete: 'set null' }, required: true }), /set null/],
      [{ ...field({}), events: 1 }, /events/],
      [field({ uniqe: true }), /fields\[0\]\.uniqe is unknown/],
      [
        {
          name: 'bad',
          fields: [{ name: 'o', type: 'string', default: 'x' }],
          rls_policy: { type: 'ownership', owner_field: 'o' },
        },
        /fields\[0\]\.default/,
      ],
    ]
    for (const [schema, message] of bad) same(t, await addSchema(tenant, schema), 400, 'INVALID_SCHEMA', message)
    t.same(await tenant.rows('select name from schemas'), [])

    const lost: [unknown, RegExp][] = [
      ['nowhere', /"nowhere", which has no schema/],
      [{ collection: 'parents', field: 'nothing' }, /"parents\.nothing", which is not a field/],
      [{ collection: 'parents', field: 'name' }, /"parents\.name", which is neither primary nor unique/],
      ['parents', /"parents\.id", which is of type uuid, not string/],
    ]
    await publish(tenant, { name: 'parents', fields: [name], rls_policy: service })
    for (const [references, message] of lost) {
      t.equal(
        (
          await addSchema(tenant, {
            name: 'child',
            fields: [{ name: 'to', type: 'string', references }],
            rls_policy: service,
          })
        ).status,
        201,
      )
      same(t, await reload(tenant), 400, 'INVALID_SCHEMA', message)
      await tenant.request('DELETE', `${rest}/schemas?name=eq.child`, { as: 'service' })
    }
    t.same(await tenant.rows('select name from applied_schemas'), [{ name: 'parents' }])
  })

  t.test('Schemas that leave out different members are created by one request', async (t) => {
    const tenant = await runtime.addTenant()
    const body = [
      { name: 'plain', fields: [name] },
      { name: 'followed', fields: [name], rls_policy: service, events: true },
    ]
    t.equal((await tenant.request('POST', `${rest}/schemas`, { as: 'service', body })).status, 201)
    t.match((await reload(tenant)).json(), { collections: ['followed', 'plain'] })
  })

  t.test('A value of another tenant is not taken; a duplicate within the tenant is rejected', async (t) => {
    const [tenant, neighbour] = [await runtime.addTenant(), await runtime.addTenant({ name: 'neighbour' })]
    const mine = {
      name: 'mine',
      fields: [{ name: 'code', type: 'string', unique: true }],
      rls_policy: { type: 'ownership', owner_field: 'owner' },
    }
    for (const one of [tenant, neighbour]) await publish(one, mine)
    t.equal((await neighbour.request('POST', `${rest}/mine`, { as: 'u2', body: { code: 'theirs' } })).status, 201)
    t.equal((await tenant.request('POST', `${rest}/mine`, { as: 'u2', body: { code: 'taken' } })).status, 201)
    const [probe, free] = [
      await tenant.request('POST', `${rest}/mine`, { as: 'u1', body: { code: 'theirs' } }),
      await tenant.request('POST', `${rest}/mine`, { as: 'u1', body: { code: 'free' } }),
    ]
    t.same(
      [probe.status, Object.keys(probe.json())],
      [free.status, Object.keys(free.json())],
      "another tenant's value has the same response as an unused one",
    )
    t.equal(probe.status, 201)
    const taken = await tenant.request('POST', `${rest}/mine`, { as: 'u1', body: { code: 'taken' } })
    same(t, taken, 409, '23505', /^Field "code" has the same value as another record\.$/)
    t.notMatch(taken.text, /u2/, 'the error does not name its owner')
    t.same((await tenant.request('GET', `${rest}/mine?code=eq.taken`, { as: 'u1' })).list(), [])
  })

  t.same(runtime.errors, [], 'no internal error occurred')
})
