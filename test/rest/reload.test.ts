// What a reload does to tables that have records: all of it or nothing, never past what was confirmed, and nothing at all
// when there is nothing to do.
import pg from 'pg'
import t from 'tap'
import { query } from '#test/support/postgres.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { addSchema, alter, insert, publish, reload, reloaded, remove, rest, same } from './support/schemas.ts'

const service = { type: 'service' }
const id = { name: 'id', type: 'uuid', primary: true }
const schema = (name: string, ...fields: object[]) => ({ name, fields: [id, ...fields], rls_policy: service })

/** All that a reload could change, as it stands in the catalog. */
async function catalog(tenant: TestTenant): Promise<unknown[]> {
  return [
    await tenant.rows('select name, definition, published, applied_at from applied_schemas order by name'),
    await tenant.rows(
      `select c.oid, c.relname, c.relfilenode, c.relrowsecurity, c.xmin from pg_class c
        where relnamespace = $1::regnamespace order by c.oid`,
      [tenant.home.schema],
    ),
    await tenant.rows(
      `select a.attrelid, a.attname, a.attnotnull, a.xmin from pg_attribute a join pg_class c on c.oid = a.attrelid
        where c.relnamespace = $1::regnamespace order by 1, 2`,
      [tenant.home.schema],
    ),
    await tenant.rows(
      'select oid, conname, pg_get_constraintdef(oid), xmin from pg_constraint where connamespace = $1::regnamespace order by oid',
      [tenant.home.schema],
    ),
    await tenant.rows(
      `select p.oid, polname, polcmd, p.xmin from pg_policy p join pg_class c on c.oid = p.polrelid
        where c.relnamespace = $1::regnamespace order by 1`,
      [tenant.home.schema],
    ),
  ]
}

t.test('a reload', async (t) => {
  const runtime = await startRuntime(t)

  t.test('that has nothing to do changes nothing, and waits for nobody who writes', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, schema('authors', { name: 'name', type: 'string', unique: true, max_length: 20 }), {
      name: 'books',
      fields: [
        { name: 'author', type: 'uuid', references: 'authors' },
        { name: 'at', type: 'datetime', default: 'now()' },
      ],
      rls_policy: { type: 'ownership', owner_field: 'owner' },
      events: true,
    })
    const before = await catalog(tenant)
    const holder = new pg.Client({ connectionString: tenant.home.adminUrl })
    await holder.connect()
    await holder.query('begin')
    // Held against everybody but readers.
    await holder.query('lock table authors, books in exclusive mode')
    try {
      t.match(await reloaded(tenant), { success: true, collections: ['authors', 'books'], actions: [], droppable: [] })
      await holder.query('lock table books in access exclusive mode')
      same(t, await reload(tenant), 503, 'DATABASE_BUSY')
    } finally {
      await holder.end()
    }
    t.same(await catalog(tenant), before)
  })

  t.test('gives a table that has records new fields and rules, and takes them away again', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, schema('notes', { name: 'title', type: 'string' }, { name: 'rank', type: 'number' }))
    for (const [title, rank] of [
      ['a', 1],
      ['b', 5],
    ] as const)
      await insert(tenant, 'notes', { title, rank })
    await alter(tenant, 'notes', {
      fields: [
        id,
        { name: 'title', type: 'string', required: true, unique: true, max_length: 5, default: 'none' },
        { name: 'rank', type: 'number', minimum: 1, maximum: 5, index: true },
        { name: 'kind', type: 'string', enum: ['x', 'y'], default: 'x', required: true },
      ],
    })
    t.same((await reloaded(tenant))['actions'], [
      'field "notes.title" is now required',
      'field "notes.title" has changed: unique, max_length, default',
      'field "notes.rank" has changed: index, minimum, maximum',
      'field "notes.kind" was added',
    ])
    t.same((await tenant.ask('GET', `${rest}/notes?select=title,rank,kind&order=title`, { as: 'service' })).list(), [
      { title: 'a', rank: 1, kind: 'x' },
      { title: 'b', rank: 5, kind: 'x' },
    ])
    for (const [record, code] of [
      [{ rank: 6 }, '23514'],
      [{ title: 'a' }, '23505'],
      [{ title: 'abcdef' }, '23514'],
      [{ kind: 'z' }, '23514'],
    ] as const) {
      t.match((await tenant.ask('POST', `${rest}/notes`, { as: 'service', body: record })).json(), { code })
      const [column, value] = Object.entries(record)[0] ?? []
      await t.rejects(query(tenant.home.adminUrl, `insert into notes (${String(column)}) values ($1)`, [value]), {
        code,
      })
    }
    t.match(await insert(tenant, 'notes', {}), { title: 'none', kind: 'x' })

    await alter(tenant, 'notes', {
      fields: [
        id,
        { name: 'title', type: 'string' },
        { name: 'rank', type: 'number' },
        { name: 'kind', type: 'string', enum: ['x', 'y', 'z'] },
      ],
    })
    await reloaded(tenant)
    t.match(await insert(tenant, 'notes', { title: 'a', rank: 6, kind: 'z' }), { title: 'a', rank: 6, kind: 'z' })
    t.match(await insert(tenant, 'notes', {}), { title: null, rank: null, kind: null })
    t.same(
      await tenant.rows("select count(*)::int as n from pg_indexes where schemaname = $1 and tablename = 'notes'", [
        tenant.home.schema,
      ]),
      [{ n: 1 }],
      'only the key is left',
    )
  })

  t.test('says of which field records do not fit, and changes nothing then', async (t) => {
    const tenant = await runtime.addTenant()
    const title = { name: 'title', type: 'string' }
    const rank = { name: 'rank', type: 'number' }
    await publish(tenant, schema('notes', title, rank, { name: 'to', type: 'uuid' }))
    await insert(tenant, 'notes', { title: 'abc', rank: 5, to: '00000000-0000-4000-8000-000000000000' })
    await insert(tenant, 'notes', { title: 'abc' })
    const before = await catalog(tenant)
    const cases: [object[], RegExp][] = [
      [[{ ...title, max_length: 2 }, rank], /"notes\.title" is longer than 2 characters/],
      [[{ ...title, enum: ['x'] }, rank], /"notes\.title" must be one of "x"/],
      [[{ ...title, unique: true }, rank], /"notes\.title" has a value that another record has/],
      [[title, { ...rank, maximum: 4 }], /"notes\.rank" must be at most 4/],
      [[title, { ...rank, required: true }], /"notes\.rank" is required/],
      [[title, rank, { name: 'more', type: 'string', required: true }], /"notes\.more" is required/],
      [
        [title, rank, { name: 'more', type: 'string', unique: true, default: 'x' }],
        /"notes\.more" has a value that another record has/,
      ],
    ]
    const to = { name: 'to', type: 'uuid' }
    for (const [fields, message] of cases) {
      await alter(tenant, 'notes', { fields: [id, ...fields, to] })
      same(t, await reload(tenant), 409, 'SCHEMA_NOT_MET', message)
      t.same(await catalog(tenant), before)
    }
    await addSchema(tenant, schema('others'))
    await alter(tenant, 'notes', { fields: [id, title, rank, { ...to, references: 'others' }] })
    same(t, await reload(tenant), 409, 'SCHEMA_NOT_MET', /"notes\.to" refers to a record of "others" that is not there/)
    t.same(await catalog(tenant), before, 'nor is anything left of the collection that was new')
    t.match((await tenant.ask('GET', `${rest}/notes?order=rank`, { as: 'service' })).list(), [
      { title: 'abc', rank: 5 },
      { title: 'abc', rank: null },
    ])
  })

  t.test('loses data only as it was confirmed, word for word', async (t) => {
    const tenant = await runtime.addTenant()
    const fields = [
      id,
      { name: 'text', type: 'string' },
      { name: 'n', type: 'number' },
      { name: 'gone', type: 'string' },
    ]
    await publish(tenant, { name: 'notes', fields, rls_policy: service })
    await insert(tenant, 'notes', { text: '12.5', n: 1, gone: 'x' })
    await alter(tenant, 'notes', {
      fields: [
        { name: 'text', type: 'number', index: true },
        { name: 'n', type: 'string', primary: true, max_length: 9 },
      ],
    })
    const before = await catalog(tenant)
    const refused = await reload(tenant)
    same(t, refused, 409, 'DESTRUCTIVE_SCHEMA_CHANGE')
    const changes = [
      'field "notes.text" changes its type from string to number',
      'field "notes.n" changes its type from number to string',
      'field "notes.n" becomes primary',
      'field "notes.id" is removed',
      'field "notes.gone" is removed',
    ]
    t.same(refused.json()['changes'], changes)
    for (const confirm of [changes.slice(1), [], [...changes, 'field "notes.other" is removed'], ['x']]) {
      const answer = await reload(tenant, confirm)
      same(t, answer, 409, 'DESTRUCTIVE_SCHEMA_CHANGE')
      t.same(answer.json()['changes'], changes)
    }
    for (const [body, code] of [
      [{ confirm: 'all' }, 'BAD_REQUEST'],
      [{ confirm: [1] }, 'BAD_REQUEST'],
      [{ confrim: [] }, 'UNKNOWN_FIELD'],
      [[], 'BAD_REQUEST'],
    ] as const) {
      same(t, await tenant.ask('POST', '/admin/reload-schemas', { as: 'service', body }), 400, code)
    }
    t.same(await catalog(tenant), before, 'nothing of it has happened')
    t.match(await reloaded(tenant, changes), {
      actions: [
        ...changes.slice(0, 1),
        'field "notes.text" has changed: index',
        ...changes.slice(1, 3),
        'field "notes.n" has changed: max_length',
        ...changes.slice(3),
      ],
    })
    t.same((await tenant.ask('GET', `${rest}/notes/1`, { as: 'service' })).json(), { text: 12.5, n: '1' })
    t.same(
      await tenant.rows(
        "select column_name::text from information_schema.columns where table_schema = $1 and table_name = 'notes' order by 1",
        [tenant.home.schema],
      ),
      [{ column_name: 'n' }, { column_name: 'tenant_id' }, { column_name: 'text' }],
    )
    t.same((await reloaded(tenant))['actions'], [])
  })

  t.test('converts what Postgres can convert, and says what it can not', async (t) => {
    const tenant = await runtime.addTenant()
    const values: Record<string, unknown> = {
      uuid: '0b1c2d3e-4f5a-4b6c-8d7e-9f0a1b2c3d4e',
      number: 1,
      boolean: true,
      datetime: '2024-02-29T12:00:00.25+02:00',
      json: { a: [1] },
      string: '2024-02-29',
    }
    const as: [string, string, unknown][] = [
      ['uuid', 'string', values['uuid']],
      ['number', 'string', '1'],
      ['number', 'boolean', true],
      ['boolean', 'string', 'true'],
      ['boolean', 'number', 1],
      ['datetime', 'string', '2024-02-29T10:00:00.25+00:00'],
      ['json', 'string', '{"a": [1]}'],
      ['string', 'datetime', '2024-02-29T00:00:00+00:00'],
    ]
    for (const [n, [from, to, shown]] of as.entries()) {
      const name = `from_${n}`
      await publish(
        tenant,
        schema(name, {
          name: 'v',
          type: from,
          ...(from === 'json' || from === 'boolean' ? {} : { unique: true }),
          index: true,
        }),
      )
      const record = await insert(tenant, name, { v: values[from] })
      await insert(tenant, name, { v: null })
      await alter(tenant, name, { fields: [id, { name: 'v', type: to, index: true }] })
      await reloaded(tenant, [`field "${name}.v" changes its type from ${from} to ${to}`])
      t.same(
        (await tenant.ask('GET', `${rest}/${name}/${String(record['id'])}`, { as: 'service' })).json()['v'],
        shown,
        `${from} to ${to}`,
      )
    }
    await publish(tenant, schema('never', { name: 'v', type: 'string' }))
    await insert(tenant, 'never', { v: 'no number' })
    for (const to of ['number', 'uuid', 'datetime', 'boolean', 'json']) {
      await alter(tenant, 'never', { fields: [id, { name: 'v', type: to }] })
      same(
        t,
        await reload(tenant, [`field "never.v" changes its type from string to ${to}`]),
        409,
        'SCHEMA_NOT_MET',
        /"never\.v"/,
      )
    }
    t.same(await tenant.rows('select v from never'), [{ v: 'no number' }])
  })

  t.test('changes both ends of a reference, and what is primary', async (t) => {
    const tenant = await runtime.addTenant()
    const code = { name: 'code', type: 'number', unique: true }
    await publish(
      tenant,
      schema('parents', code, { name: 'self', type: 'number', references: { collection: 'parents', field: 'code' } }),
      schema('children', {
        name: 'to',
        type: 'number',
        references: { collection: 'parents', field: 'code', on_delete: 'cascade' },
      }),
    )
    await insert(tenant, 'parents', { code: 7, self: 7 })
    await insert(tenant, 'children', { to: 7 })
    await alter(tenant, 'parents', {
      fields: [
        { name: 'id', type: 'uuid', default: 'gen_random_uuid()' },
        { name: 'code', type: 'string', primary: true },
        { name: 'self', type: 'string', references: 'parents' },
      ],
    })
    await alter(tenant, 'children', {
      fields: [id, { name: 'to', type: 'string', references: { collection: 'parents', on_delete: 'cascade' } }],
    })
    const changes = (await reload(tenant)).json()['changes']
    t.match(changes, [
      'field "children.to" changes its type from number to string',
      'field "parents.id" is no longer primary',
      'field "parents.code" changes its type from number to string',
      'field "parents.code" becomes primary',
      'field "parents.self" changes its type from number to string',
    ])
    await reloaded(tenant, changes as string[])
    t.match(await insert(tenant, 'parents', { code: '8' }), { id: /-/, code: '8' })
    same(t, await tenant.ask('POST', `${rest}/children`, { as: 'service', body: { to: '9' } }), 409, '23503', /"to"/)
    t.equal((await tenant.ask('DELETE', `${rest}/parents/7`, { as: 'service' })).status, 200)
    t.same(await tenant.rows('select * from children'), [])
    t.same((await reloaded(tenant))['actions'], [])
  })

  t.test('keeps the table of a schema that is gone, until its end is confirmed', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, schema('parents'), schema('children', { name: 'to', type: 'uuid', references: 'parents' }))
    const parent = await insert(tenant, 'parents', {})
    const child = await insert(tenant, 'children', { to: parent['id'] })
    await remove(tenant, 'parents')
    same(t, await reload(tenant), 400, 'INVALID_SCHEMA', /schema "children": fields\[1\]\.references names "parents"/)
    await remove(tenant, 'children')
    await publish(tenant, schema('parents'))
    const line = 'the table of "children", which has no schema, is dropped with its records'
    t.match(await reloaded(tenant), { collections: ['parents'], actions: [], droppable: [line] })
    t.equal(
      (await tenant.ask('DELETE', `${rest}/parents/${String(parent['id'])}`, { as: 'service' })).status,
      200,
      'what is not published holds on to nothing',
    )

    await addSchema(tenant, schema('children', { name: 'to', type: 'uuid', references: 'parents' }))
    same(t, await reload(tenant), 409, 'SCHEMA_NOT_MET', /"children\.to" refers to a record of "parents"/)
    await insert(tenant, 'parents', { id: parent['id'] })
    t.match((await reloaded(tenant))['actions'], ['collection "children" is published again'])
    t.match(
      (await tenant.ask('GET', `${rest}/children`, { as: 'service' })).list(),
      [child],
      'its records come back with it',
    )
    same(t, await tenant.ask('DELETE', `${rest}/parents/${String(parent['id'])}`, { as: 'service' }), 409, '23503')

    await remove(tenant, 'children')
    same(t, await reload(tenant, ['x', line]), 409, 'DESTRUCTIVE_SCHEMA_CHANGE')
    t.match(await reloaded(tenant, [line]), {
      collections: ['parents'],
      droppable: [],
      actions: ['the table of "children" was dropped'],
    })
    t.same(await tenant.rows('select to_regclass($1) as there', [`${tenant.home.schema}.children`]), [{ there: null }])
    same(t, await reload(tenant, [line]), 409, 'DESTRUCTIVE_SCHEMA_CHANGE', /is not what the reload would do/)
    await publish(tenant, schema('children', { name: 'to', type: 'uuid', references: 'parents' }))
    t.same((await tenant.ask('GET', `${rest}/children`, { as: 'service' })).list(), [])
  })

  t.test('mends what was taken away with SQL, and does not take what SQL has made', async (t) => {
    const tenant = await runtime.addTenant()
    const sql = (text: string) => query(tenant.home.adminUrl, text)
    await publish(
      tenant,
      schema('notes', { name: 'rank', type: 'number', minimum: 0, index: true, unique: false }),
      schema('others'),
    )
    await sql('alter table notes drop constraint notes_rank_range, disable row level security')
    await sql('drop index "notes.rank_idx"')
    await sql('drop table others')
    t.same((await reloaded(tenant))['actions'], [
      'row-level security of "notes" was put back',
      'the rules of field "notes.rank" were put back',
      'collection "others" was created',
    ])
    same(t, await tenant.ask('POST', `${rest}/notes`, { as: 'service', body: { rank: -1 } }), 400, '23514')
    t.same((await tenant.ask('GET', `${rest}/notes`, { as: 'u1' })).list(), [])
    t.same(
      await tenant.rows("select count(*)::int as n from pg_indexes where schemaname = $1 and tablename = 'notes'", [
        tenant.home.schema,
      ]),
      [{ n: 2 }],
    )

    await sql('create table made_by_sql (id uuid primary key)')
    await addSchema(tenant, schema('made_by_sql'))
    same(t, await reload(tenant), 409, 'CONFLICT')
    await remove(tenant, 'made_by_sql')
    await sql('create view ranks as select rank from notes')
    await alter(tenant, 'notes', { fields: [id] })
    same(t, await reload(tenant, ['field "notes.rank" is removed']), 409, 'CONFLICT', /made with SQL depends/)
  })

  t.test('names things apart that could be mistaken for each other', async (t) => {
    const tenant = await runtime.addTenant()
    const long = `a${'x'.repeat(62)}`
    const field = (name: string) => ({ name, type: 'string', unique: true })
    await publish(
      tenant,
      schema('a', field('b_c'), field('B_C')),
      schema('a_b', field('c')),
      schema('a_pkey'),
      schema('a_b_c_key'),
      schema('a_by_owner'),
      {
        name: long,
        fields: [field(`${'y'.repeat(62)}1`), field(`${'y'.repeat(62)}2`)],
        rls_policy: { type: 'ownership', owner_field: 'o' },
        events: true,
      },
      {
        name: `${long.slice(0, 62)}z`,
        fields: [field(`${'y'.repeat(62)}1`)],
        rls_policy: { type: 'ownership', owner_field: 'o' },
        events: true,
      },
    )
    t.match(await insert(tenant, long, { [`${'y'.repeat(62)}1`]: 'v' }), { o: null })
    t.same((await reloaded(tenant))['actions'], [])
  })

  t.test('of two hundred schemas that are as they were is one look', async (t) => {
    const tenant = await runtime.addTenant()
    const many = Array.from({ length: 200 }, (_, n) => ({
      name: `c${n}`,
      rls_policy: { type: 'ownership', owner_field: 'owner' },
      fields: [
        { name: 'title', type: 'string', required: true, max_length: 200 },
        { name: 'rank', type: 'number', minimum: 0, index: true },
        ...(n === 0 ? [] : [{ name: 'to', type: 'uuid', references: `c${n - 1}` }]),
      ],
    }))
    const answer = await tenant.ask('POST', `${rest}/schemas`, { as: 'service', body: many })
    t.equal(answer.status, 201, answer.text.slice(0, 200))
    const began = performance.now()
    t.equal(((await reloaded(tenant)) as { actions: string[] }).actions.length, 200)
    const made = performance.now()
    t.same((await reloaded(tenant))['actions'], [])
    t.comment(`made in ${Math.round(made - began)} ms, looked at in ${Math.round(performance.now() - made)} ms`)
    t.same(
      await tenant.rows(
        "select count(*)::int as n from pg_constraint where connamespace = $1::regnamespace and contype = 'f' and conname like 'c%fkey'",
        [tenant.home.schema],
      ),
      [{ n: 199 }],
    )
  })

  t.same(runtime.problems, [], 'none of it was an error of ours')
})
