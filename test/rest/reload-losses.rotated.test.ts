// What a reload may lose of tables with records: only what the caller confirmed, for conversions, references and
// removed schemas.
import t from 'tap'
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
  service,
} from './support/schemas.ts'

t.test('A reload', async (t) => {
  const runtime = await startRuntime(t)

  t.test('A reload loses data only as it was confirmed, word for word', async (t) => {
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
    const rejected = await reload(tenant)
    same(t, rejected, 409, 'DESTRUCTIVE_SCHEMA_CHANGE')
    const changes = [
      'field "notes.text" changes its type from string to number',
      'field "notes.n" changes its type from number to string',
      'field "notes.n" becomes primary',
      'field "notes.id" is removed',
      'field "notes.gone" is removed',
    ]
    t.same(rejected.json()['changes'], changes)
    for (const confirm of [changes.slice(1), [], [...changes, 'field "notes.other" is removed'], ['x']]) {
      const response = await reload(tenant, confirm)
      same(t, response, 409, 'DESTRUCTIVE_SCHEMA_CHANGE')
      t.same(response.json()['changes'], changes)
    }
    for (const [body, code] of [
      [{ confirm: 'all' }, 'BAD_REQUEST'],
      [{ confirm: [1] }, 'BAD_REQUEST'],
      [{ confrim: [] }, 'UNKNOWN_FIELD'],
      [[], 'BAD_REQUEST'],
    ] as const) {
      same(t, await tenant.request('POST', '/admin/reload-schemas', { as: 'service', body }), 400, code)
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
    t.same((await tenant.request('GET', `${rest}/notes/1`, { as: 'service' })).json(), { text: 12.5, n: '1' })
    t.same(
      await tenant.rows(
        "select column_name::text from information_schema.columns where table_schema = $1 and table_name = 'notes' order by 1",
        [tenant.home.schema],
      ),
      [{ column_name: 'n' }, { column_name: 'tenant_id' }, { column_name: 'text' }],
    )
    t.same((await reloaded(tenant))['actions'], [])
  })

  t.test('A reload converts values that Postgres can convert, and names those that it cannot', async (t) => {
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
        (await tenant.request('GET', `${rest}/${name}/${String(record['id'])}`, { as: 'service' })).json()['v'],
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

  t.test('A reload changes both ends of a reference, and the primary key', async (t) => {
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
    same(
      t,
      await tenant.request('POST', `${rest}/children`, { as: 'service', body: { to: '9' } }),
      409,
      '23503',
      /"to"/,
    )
    t.equal((await tenant.request('DELETE', `${rest}/parents/7`, { as: 'service' })).status, 200)
    t.same(await tenant.rows('select * from children'), [])
    t.same((await reloaded(tenant))['actions'], [])
  })

  t.test('The table of a removed schema remains until its removal is confirmed', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, schema('parents'), schema('children', { name: 'to', type: 'uuid', references: 'parents' }))
    const parent = await insert(tenant, 'parents', {})
    const child = await insert(tenant, 'children', { to: parent['id'] })
    await remove(tenant, 'parents')
    same(t, await reload(tenant), 400, 'INVALID_SCHEMA', /^Schema "children": fields\[1\]\.references names "parents"/)
    await remove(tenant, 'children')
    await publish(tenant, schema('parents'))
    const line = 'the table of "children", which has no schema, is dropped with its records'
    t.match(await reloaded(tenant), { collections: ['parents'], actions: [], droppable: [line] })
    t.equal(
      (await tenant.request('DELETE', `${rest}/parents/${String(parent['id'])}`, { as: 'service' })).status,
      200,
      'an unpublished table keeps no reference',
    )

    await addSchema(tenant, schema('children', { name: 'to', type: 'uuid', references: 'parents' }))
    same(t, await reload(tenant), 409, 'SCHEMA_NOT_MET', /"children\.to" references a record of "parents"/)
    await insert(tenant, 'parents', { id: parent['id'] })
    t.match((await reloaded(tenant))['actions'], ['collection "children" is published again'])
    t.match(
      (await tenant.request('GET', `${rest}/children`, { as: 'service' })).list(),
      [child],
      'its records return with it',
    )
    same(t, await tenant.request('DELETE', `${rest}/parents/${String(parent['id'])}`, { as: 'service' }), 409, '23503')

    await remove(tenant, 'children')
    same(t, await reload(tenant, ['x', line]), 409, 'DESTRUCTIVE_SCHEMA_CHANGE')
    t.match(await reloaded(tenant, [line]), {
      collections: ['parents'],
      droppable: [],
      actions: ['the table of "children" was dropped'],
    })
    t.same(await tenant.rows('select to_regclass($1) as there', [`${tenant.home.schema}.children`]), [{ there: null }])
    same(
      t,
      await reload(tenant, [line]),
      409,
      'DESTRUCTIVE_SCHEMA_CHANGE',
      /^The reload would not do what is confirmed: /,
    )
    await publish(tenant, schema('children', { name: 'to', type: 'uuid', references: 'parents' }))
    t.same((await tenant.request('GET', `${rest}/children`, { as: 'service' })).list(), [])
  })

  t.same(runtime.errors, [], 'no internal error occurred')
})
