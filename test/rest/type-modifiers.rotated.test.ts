// Types with a modifier: what the interface writes, compares or passes on equals what Postgres makes of the same
// literal.
import pg from 'pg'
import t, { type Test } from 'tap'
import { startRuntime, type ApiResponse, type TestTenant } from '#test/support/runtime.ts'
import { asLiteral, firstOf, modifiedTypes, type ModifiedType, type Value } from './support/modified-types.ts'

const tables = modifiedTypes.map(
  ({ name, sql, type }) => `${sql}
  create table ${name} (id integer primary key, v ${type}, note text default 'none');
  create table wanted_${name} (like ${name} including all);
  create view view_${name} with (security_invoker) as select id, v from ${name};
  alter table ${name} enable row level security;
  create policy allow_all on ${name} using (true) with check (true);
  create function f_${name}(v ${type}) returns text immutable language sql as 'select to_json(v)::text';`,
)
const keyed = modifiedTypes
  .filter(({ isScalar }) => isScalar)
  .map(
    ({ name, type }) => `
  create table key_${name} (v ${type} primary key);
  alter table key_${name} enable row level security;
  create policy allow_all on key_${name} using (true) with check (true);`,
  )
const variadic = modifiedTypes
  .filter(({ isArray, type }) => isArray && type.endsWith('[]'))
  .map(
    ({ name, type }) =>
      `create function all_${name}(variadic v ${type}) returns text immutable language sql as 'select to_json(v)::text';`,
  )

interface Scene {
  tenant: TestTenant
  oracle: pg.Client
}

async function openScene(t: Test): Promise<Scene> {
  const tenant = await (await startRuntime(t)).addTenant()
  const oracle = new pg.Client({ connectionString: tenant.home.adminUrl, options: '-c timezone=UTC' })
  await oracle.connect()
  // The runtime stops the server at the end of the test.
  oracle.on('error', () => undefined)
  await oracle.query([...tables, ...keyed, ...variadic].join('\n'))
  const reloaded = await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })
  t.equal(reloaded.status, 200, reloaded.text)
  return { tenant, oracle }
}

/** The values of a statement with one column, or the SQLSTATE with which it failed. */
type Outcome = { values: unknown[] } | { code: string }

async function request({ oracle }: Scene, sql: string): Promise<Outcome> {
  try {
    const { rows } = await oracle.query<unknown[]>({ text: sql, rowMode: 'array' })
    return { values: rows.map(([value]) => value) }
  } catch (error) {
    if (error instanceof pg.DatabaseError) return { code: error.code ?? '' }
    throw error
  }
}

/** Returns the outcome of a response; an error must have the status 400. */
function outcomeOf(response: ApiResponse, values: (body: unknown) => unknown[]): Outcome {
  if (response.status < 300) return { values: response.text === '' ? [] : values(JSON.parse(response.text)) }
  return { code: `${response.status === 400 ? '' : `${response.status} `}${String(response.json()['code'])}` }
}

const valuesOf = (body: unknown) => [body].flat().map((row) => (row as { v: unknown }).v)
const idsOf = (body: unknown) => (body as { id: number }[]).map(({ id }) => id)
const parameter = (text: string) => encodeURIComponent(text)
/** Quotes a value for a list in parentheses. */
const listed = (text: string) => parameter(`"${text.replaceAll(/["\\]/g, '\\$&')}"`)

interface Write {
  method: string
  path: (name: string) => string
  prefer?: string[]
  isMany?: true
  isNew: boolean
}

const writes: Record<string, Write> = {
  'an insert': { method: 'POST', path: (name) => name, isNew: true },
  'an insert of several records': { method: 'POST', path: (name) => name, isMany: true, isNew: true },
  'an insert with defaults': {
    method: 'POST',
    path: (name) => `${name}?columns=id,v,note`,
    prefer: ['missing=default'],
    isNew: true,
  },
  'an insert through a view': { method: 'POST', path: (name) => `view_${name}`, isNew: true },
  'an update': { method: 'PATCH', path: (name) => `${name}?id=eq.1`, isNew: false },
  'an upsert': { method: 'POST', path: (name) => name, prefer: ['resolution=merge-duplicates'], isNew: false },
  'a put': { method: 'PUT', path: (name) => `${name}?id=eq.1`, isNew: false },
}

t.test('Types with a modifier', async (t) => {
  const scene = await openScene(t)
  const { tenant, oracle } = scene
  const stored = async (table: string) =>
    (await oracle.query<{ v: string }>(`select to_json(v)::text as v from ${table} order by id`)).rows
  const insert = ({ name }: ModifiedType, id: number, value: Value) =>
    request(scene, `insert into ${name} (id, v) values (${id}, ${asLiteral(value)})`)
  const empty = async ({ name }: ModifiedType) => oracle.query(`truncate ${name}; truncate wanted_${name}`)

  for (const [what, { method, path, prefer = [], isMany = false, isNew }] of Object.entries(writes)) {
    t.test(`${what} stores what Postgres stores`, async (t) => {
      for (const type of modifiedTypes) {
        for (const value of type.values) {
          await empty(type)
          if (!isNew)
            await oracle.query(
              `insert into ${type.name} (id) values (1); insert into wanted_${type.name} (id) values (1)`,
            )
          const insert = `insert into wanted_${type.name} (id, v) values (1, ${asLiteral(value)}) returning to_json(v)`
          const update = `update wanted_${type.name} set v = ${asLiteral(value)} where id = 1 returning to_json(v)`
          const wanted = await request(scene, isNew ? insert : update)
          const record = { id: 1, v: value.json, ...(method === 'PUT' ? { note: null } : {}) }
          const headers = { prefer: ['return=representation', ...prefer].join(',') }
          const response = await tenant.request(method, `/rest/v1/${path(type.name)}`, {
            body: isMany ? [record] : record,
            headers,
          })
          const given = outcomeOf(response, valuesOf)
          t.same(
            [given, await stored(type.name)],
            [wanted, await stored(`wanted_${type.name}`)],
            `${type.type}: ${value.text}`,
          )
        }
      }
    })
  }

  t.test('An argument of a function is what Postgres makes of it', async (t) => {
    for (const { name, type, isArray, values } of modifiedTypes) {
      for (const value of values) {
        const called = async (fn: string, sql: string) => {
          const wanted = await request(scene, `select ${fn}(${sql})`)
          const path = `/rest/v1/rpc/${fn}`
          const got = await tenant.request('GET', `${path}?v=${parameter(value.text)}`)
          t.same(
            outcomeOf(got, (body) => [body]),
            wanted,
            `GET ${fn}: ${type}: ${value.text}`,
          )
          const posted = await tenant.request('POST', path, { body: { v: value.json } })
          t.same(
            outcomeOf(posted, (body) => [body]),
            wanted,
            `POST ${fn}: ${type}: ${value.text}`,
          )
        }
        await called(`f_${name}`, asLiteral(value))
        if (isArray && type.endsWith('[]')) await called(`all_${name}`, `variadic ${asLiteral(value)}`)
      }
    }
  })

  t.test('A filter finds what Postgres finds', async (t) => {
    for (const type of modifiedTypes) {
      await empty(type)
      for (const [n, value] of type.values.entries()) await insert(type, n, value)
      await oracle.query(`insert into ${type.name} (id) values (100)`)
      const first = firstOf(type)
      for (const value of type.values) {
        const [sql, text] = [asLiteral(value), parameter(value.text)]
        const filters: [string, string][] = [
          [`v=eq.${text}`, `v = ${sql}`],
          [`v=neq.${text}`, `v <> ${sql}`],
          [`v=gte.${text}`, `v >= ${sql}`],
          [`v=isdistinct.${text}`, `v is distinct from ${sql}`],
          [`or=(v.eq.${listed(value.text)},id.eq.100)`, `v = ${sql} or id = 100`],
        ]
        if (!type.isComposite)
          filters.push([`v=in.(${listed(value.text)},${listed(first.text)})`, `v in (${sql}, ${asLiteral(first)})`])
        if (type.isArray)
          filters.push(
            [`v=cs.${text}`, `v @> ${sql}`],
            [`v=cd.${text}`, `v <@ ${sql}`],
            [`v=ov.${text}`, `v && ${sql}`],
          )
        if (type.isTextual) {
          filters.push([`v=like.${text}`, `v like ${sql}`], [`v=ilike.${text}*`, `v ilike ${sql} || '%'`])
          filters.push([`v=match.${text}$`, `v ~ (${sql} || '$')`])
        }
        const [found, wanted]: [Record<string, Outcome>, Record<string, Outcome>] = [{}, {}]
        for (const [filter, condition] of filters) {
          wanted[condition] = await request(scene, `select id from ${type.name} where ${condition} order by id`)
          found[condition] = outcomeOf(
            await tenant.request('GET', `/rest/v1/${type.name}?select=id&order=id&${filter}`),
            idsOf,
          )
        }
        t.same(found, wanted, `${type.type}: ${value.text}`)
      }
      const changed = await request(scene, `select id from ${type.name} where v = ${asLiteral(first)} order by id`)
      const path = `/rest/v1/${type.name}?select=id&order=id&v=eq.${parameter(first.text)}`
      const response = await tenant.request('PATCH', path, {
        body: { note: 'changed' },
        headers: { prefer: 'return=representation' },
      })
      t.same(outcomeOf(response, idsOf), changed, `${type.type}: what a change finds`)
    }
  })

  t.test('Pages by keys contain the whole list in its order', async (t) => {
    for (const type of modifiedTypes.filter(({ isComposite }) => !isComposite)) {
      await empty(type)
      for (const [n, value] of [...type.values, ...type.values].entries()) await insert(type, n, value)
      await oracle.query(`insert into ${type.name} (id) values (100)`)
      for (const direction of ['asc', 'desc']) {
        const wanted = await request(scene, `select id from ${type.name} order by v ${direction}, id ${direction}`)
        const found: unknown[] = []
        for (let cursor: string | undefined = ''; cursor !== undefined;) {
          const response = await tenant.request(
            'GET',
            `/rest/v1/${type.name}?select=id&order=v.${direction}&limit=2&cursor=${cursor}`,
          )
          if (response.status !== 200) throw new Error(response.text)
          found.push(...response.list().map(({ id }) => id))
          cursor = response.headers['next-cursor']?.toString()
        }
        t.same({ values: found }, wanted, `${type.type} ${direction}`)
      }
    }
  })

  t.test('A record is found, paged by and replaced by its key', async (t) => {
    for (const { name, type, values } of modifiedTypes.filter(({ isScalar }) => isScalar)) {
      for (const value of values.filter(({ text }) => text !== '')) {
        await oracle.query(`truncate key_${name}`)
        const path = `/rest/v1/key_${name}`
        const put = await tenant.request('PUT', `${path}?v=eq.${parameter(value.text)}`, { body: { v: value.json } })
        const retained = await request(scene, `select to_json(v)::text from key_${name} where v = ${asLiteral(value)}`)
        const isStored = 'values' in retained && retained.values.length > 0
        t.equal(put.status, isStored ? 201 : 400, `${type}: ${value.text}: ${put.text}`)
        const found = await tenant.request('GET', `${path}/${parameter(value.text)}`)
        t.equal(found.status, isStored ? 200 : 'code' in retained ? 400 : 404, `${type}: ${value.text}: ${found.text}`)
        if (isStored) t.same(found.json(), { v: JSON.parse(String(retained.values[0])) as unknown })
      }
    }
  })

  t.test('A cast in select is what Postgres makes of it', async (t) => {
    const casts: Record<string, string[]> = {
      plain_0: ['char', 'varchar', 'text'],
      array_0: ['text[]', 'char[]'],
      plain_6: ['int', 'numeric'],
      domain_6: ['text'],
      plain_14: ['date', 'time'],
    }
    for (const type of modifiedTypes) {
      await empty(type)
      await insert(type, 1, firstOf(type))
      for (const to of casts[type.name] ?? []) {
        const wanted = await request(scene, `select to_json(v::${to}) from ${type.name}`)
        t.same(
          outcomeOf(await tenant.request('GET', `/rest/v1/${type.name}?select=v::${to}`), valuesOf),
          wanted,
          `${type.type} as ${to}`,
        )
      }
    }
  })

  t.test('The description names types without their modifier', async (t) => {
    const description = (await tenant.request('GET', '/rest/v1/')).json()
    const [character, numeric] = [
      { type: 'string', format: 'character' },
      { type: 'number', format: 'numeric' },
    ]
    const wanted: Record<string, object> = {
      plain_0: character,
      array_0: { type: 'array', format: 'character[]', items: character },
      domain_6: numeric,
      arrays_6: { type: 'array', format: 'numeric[]', items: numeric },
      plain_8: { type: 'string', format: 'interval' },
      plain_14: { type: 'string', format: 'timestamp without time zone' },
    }
    const definitions = description['definitions'] as Record<string, { properties: Record<string, unknown> }>
    for (const [name, type] of Object.entries(wanted)) t.same(definitions[name]?.properties['v'], type, name)
  })

  t.test('A catalog that was published without modifiers is completed from the home', async (t) => {
    const withoutModifier = (_key: string, value: unknown) => {
      if (typeof value !== 'object' || value === null || !('base' in value && 'type' in value)) return value
      const { base, type, ...rest } = value
      return { ...rest, type: /^(?:dd|a)_/.test(String(type)) ? type : base }
    }
    await oracle.query(
      'truncate plain_0, array_0, domain_0, plain_3; drop view view_plain_6; alter table plain_6 alter v type text',
    )
    const [row] = await tenant.rows('select document from published_catalog')
    const document = JSON.stringify(row?.['document'], withoutModifier)
    t.match(document, /"type":"character"/)
    t.notMatch(document, /"base"/)
    await tenant.rows('update published_catalog set document = $1', [document])
    tenant.change({})
    for (const [name, v] of [
      ['plain_0', 'abcde'],
      ['array_0', ['abcde']],
      ['domain_0', 'abcde'],
      ['plain_3', '101'],
    ] as const) {
      t.same(
        outcomeOf(await tenant.request('POST', `/rest/v1/${name}?select=v`, { body: { id: 1, v } }), valuesOf),
        { values: [v] },
        name,
      )
    }
    t.equal((await tenant.request('GET', '/rest/v1/rpc/f_plain_0?v=abcde')).text, JSON.stringify('"abcde"'))
    t.equal((await tenant.request('GET', '/rest/v1/rpc/f_array_3?v={101}')).text, JSON.stringify('["101"]'))
    const numeric = await tenant.request('POST', '/rest/v1/plain_6', { body: { id: 2, v: 'words' } })
    t.same([numeric.status, numeric.json()['code']], [400, '22P02'], 'another type is not published before a reload')
  })
})
