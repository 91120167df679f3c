// The effect of a reload on tables with records: all changes or none, never more than was confirmed, and no effect if
// nothing has changed.
import pg from 'pg'
import t from 'tap'
import { query } from '#test/support/postgres.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { catalog } from './support/catalog.ts'
import {
  addSchema,
  alter,
  id,
  insert,
  publish,
  reload,
  reloaded,
  remove,
  rest,
  same,
  schema,
} from './support/schemas.ts'

t.test('A reload', async (t) => {
  const runtime = await startRuntime(t)

  t.test('A reload without changes changes nothing, and waits for no writer', async (t) => {
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
    // Blocks everything except readers.
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

  t.test('A reload adds new fields and rules to a table with records, and removes them again', async (t) => {
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
    t.same(
      (await tenant.request('GET', `${rest}/notes?select=title,rank,kind&order=title`, { as: 'service' })).list(),
      [
        { title: 'a', rank: 1, kind: 'x' },
        { title: 'b', rank: 5, kind: 'x' },
      ],
    )
    for (const [record, code] of [
      [{ rank: 6 }, '23514'],
      [{ title: 'a' }, '23505'],
      [{ title: 'abcdef' }, '23514'],
      [{ kind: 'z' }, '23514'],
    ] as const) {
      t.match((await tenant.request('POST', `${rest}/notes`, { as: 'service', body: record })).json(), { code })
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
      'only the key remains',
    )
  })

  t.test('A reload names the field whose records do not fit, and changes nothing', async (t) => {
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
      [[{ ...title, unique: true }, rank], /"notes\.title" has the same value as another record/],
      [[title, { ...rank, maximum: 4 }], /"notes\.rank" must be at most 4/],
      [[title, { ...rank, required: true }], /"notes\.rank" is required/],
      [[title, rank, { name: 'more', type: 'string', required: true }], /"notes\.more" is required/],
      [
        [title, rank, { name: 'more', type: 'string', unique: true, default: 'x' }],
        /"notes\.more" has the same value as another record/,
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
    same(
      t,
      await reload(tenant),
      409,
      'SCHEMA_NOT_MET',
      /"notes\.to" references a record of "others" that does not exist/,
    )
    t.same(await catalog(tenant), before, 'and nothing of the new collection remains')
    t.match((await tenant.request('GET', `${rest}/notes?order=rank`, { as: 'service' })).list(), [
      { title: 'abc', rank: 5 },
      { title: 'abc', rank: null },
    ])
  })

  t.test('A reload restores what SQL removed, and keeps what SQL created', async (t) => {
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
      'row-level security of "notes" was restored',
      'the rules of field "notes.rank" were restored',
      'collection "others" was created',
    ])
    same(t, await tenant.request('POST', `${rest}/notes`, { as: 'service', body: { rank: -1 } }), 400, '23514')
    t.same((await tenant.request('GET', `${rest}/notes`, { as: 'u1' })).list(), [])
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
    same(t, await reload(tenant, ['field "notes.rank" is removed']), 409, 'CONFLICT', /created with SQL depends/)
  })

  t.test('Similar names of generated objects do not collide', async (t) => {
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

  t.test('A reload of two hundred unchanged schemas is one check', async (t) => {
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
    const response = await tenant.request('POST', `${rest}/schemas`, { as: 'service', body: many })
    t.equal(response.status, 201, response.text.slice(0, 200))
    const began = performance.now()
    t.equal(((await reloaded(tenant)) as { actions: string[] }).actions.length, 200)
    const made = performance.now()
    t.same((await reloaded(tenant))['actions'], [])
    t.comment(`created in ${Math.round(made - began)} ms, checked in ${Math.round(performance.now() - made)} ms`)
    t.same(
      await tenant.rows(
        "select count(*)::int as n from pg_constraint where connamespace = $1::regnamespace and contype = 'f' and conname like 'c%fkey'",
        [tenant.home.schema],
      ),
      [{ n: 199 }],
    )
  })

  t.same(runtime.errors, [], 'no internal error occurred')
})
