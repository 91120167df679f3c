// For any query string the response is 2xx or 4xx: never an internal error, and never text of another tenant.
import fc from 'fast-check'
import t from 'tap'
import { effort, seed } from '#test/support/effort.ts'
import { query } from '#test/support/postgres.ts'
import { send, startRuntime } from '#test/support/runtime.ts'
import { makeScene } from './features/scene.ts'
import { calls, reads, writes, type RandomRequest } from './support/random-requests.ts'
import { canary } from './support/random-tables.ts'

const columns = [
  'id',
  'a_uuid',
  'a_string',
  'a_number',
  'a_boolean',
  'a_datetime',
  'a_json',
  'tenant_id',
  'xmin',
  'ctid',
  '"a_string"',
  'a_string::text',
  'a_json->x',
  'count()',
  '*',
  '',
]
const operators = [
  'eq',
  'neq',
  'gt',
  'gte',
  'lt',
  'lte',
  'like',
  'ilike',
  'in',
  'is',
  'match',
  'fts',
  'cs',
  'cd',
  'ov',
  'any',
  'EQ',
  '',
  'not',
]
const operands = [
  '',
  'null',
  'NULL',
  'true',
  'unknown',
  'not_null',
  '0',
  '-1',
  '1e999',
  'NaN',
  'infinity',
  '-infinity',
  '99999999999999999999',
  '2024-02-30',
  '2024-01-01T00:00:00Z',
  'now',
  '0b1c2d3e-4f5a-4b6c-8d7e-9f0a1b2c3d4e',
  '{}',
  '[',
  '"',
  '\\',
  '%',
  '_',
  '*',
  '*\\',
  '\\%',
  "'",
  "';drop table things;--",
  '()',
  '(',
  '(,)',
  '("a","b\\"c")',
  '(1,2,null)',
  '("',
  '(a"b,c)',
  '\0',
  'a\0b',
  '\ud83d',
  '💩',
  '\u202e',
  '.',
  '..',
  '((()))',
  'x'.repeat(3_000),
  '{"a":"\\u0000"}',
  '294277-01-01',
  '4714-01-01 BC',
]
const counts = [
  '0',
  '1',
  '-1',
  '1000',
  '1001',
  '999999999999999',
  '9999999999999999',
  '1e3',
  '',
  ' 1',
  '0x1',
  'all',
  '1,2',
]

const column = fc.oneof(fc.constantFrom(...columns), fc.string({ maxLength: 10 }))
const operand = fc.oneof(
  fc.constantFrom(...operands),
  fc.string({ maxLength: 20, unit: 'binary' }),
  fc.double().map(String),
  fc.json({ maxDepth: 2 }),
)
const filter = fc
  .tuple(
    column,
    fc.constantFrom('', 'not.', 'not.not.'),
    fc.oneof(fc.constantFrom(...operators), fc.string({ maxLength: 4 })),
    operand,
  )
  .map(([name, not, operator, value]) => [name, `${not}${operator}.${value}`] as const)
const list = fc.array(column, { maxLength: 5 }).map((names) => names.join(','))
const order = fc
  .array(fc.tuple(column, fc.constantFrom('', '.asc', '.desc', '.nullsfirst', '.desc.nullslast', '.up', '.', '..')), {
    maxLength: 4,
  })
  .map((parts) => parts.map(([name, way]) => name + way).join(','))
const parameter = fc.oneof(
  { weight: 5, arbitrary: filter },
  list.map((value) => ['select', value] as const),
  list.map((value) => ['columns', value] as const),
  order.map((value) => ['order', value] as const),
  fc.tuple(fc.constantFrom('limit', 'offset'), fc.oneof(fc.constantFrom(...counts), operand)),
  fc.tuple(
    fc.constantFrom('or', 'and', 'not.or', 'on_conflict', 'select', '__proto__', 'constructor', 'toString'),
    operand,
  ),
)
const encoded = fc
  .array(parameter, { maxLength: 5 })
  .map((parameters) =>
    parameters
      .map(([name, value]) => `${encodeURIComponent(name.toWellFormed())}=${encodeURIComponent(value.toWellFormed())}`)
      .join('&'),
  )
// Text that no client sends: percent signs that encode nothing, and bytes that are not a character.
const raw = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '=',
        '&',
        '?',
        '%',
        '%ff',
        '%00',
        '%ed%a0%80',
        '+',
        '.',
        ',',
        '(',
        ')',
        '"',
        'eq.',
        'in.(',
        'select',
        'order',
        'a_string',
      ),
      fc.stringMatching(/^[!-~]$/),
    ),
    { maxLength: 30 },
  )
  .map((parts) => parts.join('').replaceAll('#', '%23'))
const search = fc.oneof({ weight: 4, arbitrary: encoded }, raw)

t.test('Any query string', async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  const types = ['uuid', 'string', 'number', 'boolean', 'datetime', 'json']
  const fields = types.map((type) => ({ name: `a_${type}`, type }))
  await tenant.request('POST', '/rest/v1/schemas', {
    as: 'service',
    body: { name: 'things', fields, rls_policy: { type: 'ownership', owner_field: 'owner' } },
  })
  t.equal((await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })).status, 200)
  // The same columns in another schema of the interface.
  await query(
    tenant.home.adminUrl,
    `create table "further.things" (like things including defaults); alter table "further.things" enable row level security;
     create policy all_rows on "further.things" using (true) with check (true)`,
  )
  const settings = { db_schemas: ['public', 'further'] }
  t.equal((await tenant.request('POST', '/admin/reload-schemas', { as: 'service', body: { settings } })).status, 200)
  const rows = [
    { a_string: 'x%_\\', a_number: 1, a_boolean: true, a_json: { a: 1 } },
    { a_datetime: '2024-01-01T00:00:00Z', a_uuid: '0b1c2d3e-4f5a-4b6c-8d7e-9f0a1b2c3d4e' },
  ]
  const columns = fields.map(({ name }) => name).join(',')
  t.equal(
    (await tenant.request('POST', `/rest/v1/things?columns=${columns}`, { as: 'service', body: rows })).status,
    201,
  )

  const responses = new Map<string, number>()
  const check = async (method: string, url: string, headers: Record<string, string>, body: object | undefined) => {
    const { status, text } = await send(tenant.port, method, url, { ...tenant.as('service'), ...headers }, body)
    responses.set(
      `${method} ${Math.floor(status / 100)}xx`,
      (responses.get(`${method} ${Math.floor(status / 100)}xx`) ?? 0) + 1,
    )
    if (status < 200 || status >= 500 || (status >= 300 && status < 400))
      throw new Error(`${method} ${url}: ${status} ${text}`)
    if (status >= 400 && method !== 'HEAD') {
      const error = JSON.parse(text) as Record<string, unknown>
      if (typeof error['message'] !== 'string' || typeof error['code'] !== 'string')
        throw new Error(`${method} ${url}: no error of the known form: ${text}`)
      // Postgres' message about a malformed full-text search only refers to the search.
      const internal = /syntax error(?! in tsquery)|relation "|pg_|\bat .*\.ts:/.exec(error['message'])?.[0]
      // Messages may repeat the request.
      if (internal !== undefined && !url.includes(encodeURI(internal)) && !url.includes(internal))
        throw new Error(`${method} ${url}: internal text: ${text}`)
    }
  }
  const preferences = fc.constantFrom<Record<string, string>>(
    {},
    { prefer: 'count=exact' },
    { prefer: 'return=representation' },
    { prefer: 'count=planned,return=minimal' },
    { prefer: 'nonsense=;,=' },
    { accept: 'application/vnd.pgrst.object+json' },
    { 'accept-profile': 'public' },
    { 'accept-profile': 'other' },
    { 'accept-profile': 'further', 'content-profile': 'further' },
  )
  const change = fc.constantFrom<object>({}, { a_string: 'y' }, { a_number: 2, a_boolean: null }, { unknown: 1 }, [])
  const collections = fc.constantFrom(
    'things',
    'things',
    'things',
    'schemas',
    'storage_objects',
    'storage_buckets',
    'event_log',
    'function_invocations',
  )

  for (const method of ['GET', 'HEAD', 'PATCH', 'DELETE', 'POST']) {
    const runs = effort(method === 'GET' ? { small: 700, full: 60_000 } : { small: 150, full: 15_000 })
    const property = fc.asyncProperty(collections, search, preferences, change, (collection, query, headers, body) =>
      // Schemas are only read here; another test changes them at random.
      check(
        method,
        `/rest/v1/${method === 'GET' || method === 'HEAD' ? collection : 'things'}?${query}`,
        headers,
        method === 'PATCH' || method === 'POST' ? body : undefined,
      ),
    )
    const outcome = await fc.check(property, { seed, numRuns: runs })
    t.equal(outcome.failed, false, fc.defaultReportMessage(outcome) ?? `${method}: ${runs} query strings`)
  }
  const ids = fc.oneof(
    fc.constantFrom('', '.', '..', '%2e%2e', '%00', 'x', '%ff', '%', "';--", '0'.repeat(5_000)),
    fc.string({ maxLength: 20, unit: 'binary' }).map((id) => encodeURIComponent(id.toWellFormed())),
  )
  const keys = await fc.check(
    fc.asyncProperty(collections, ids, (collection, id) => check('GET', `/rest/v1/${collection}/${id}`, {}, undefined)),
    { seed, numRuns: effort({ small: 200, full: 10_000 }) },
  )
  t.equal(keys.failed, false, fc.defaultReportMessage(keys) ?? 'and any key')
  t.comment(`seed ${seed}: ${[...responses].map(([what, count]) => `${what} ${count}`).join(', ')}`)
  t.ok((responses.get('GET 2xx') ?? 0) > 20 && (responses.get('GET 4xx') ?? 0) > 20, 'both statuses occurred')
  t.same(runtime.errors, [], 'no internal error occurred')
})

t.test('Any request for tables of every kind', async (t) => {
  const runtime = await startRuntime(t, { rest: { allowsRollback: true } })
  const { tenant } = (await makeScene(runtime))(t)
  const responses = new Map<string, number>()
  const check = async ({ method, path, headers, body }: RandomRequest) => {
    const { status, text } = await send(
      tenant.port,
      method,
      `/rest/v1${path}`,
      { ...tenant.as('service'), ...headers },
      body,
    )
    const wrong = (error: string) =>
      new Error(`${method} ${path} ${JSON.stringify(headers)} ${body ?? ''}: ${status} ${error}: ${text}`)
    const kind = `${Math.floor(status / 100)}xx`
    responses.set(kind, (responses.get(kind) ?? 0) + 1)
    if (status < 200 || status >= 500 || (status > 300 && status < 400)) throw wrong('is not a valid status')
    if (status >= 300 && method !== 'HEAD') {
      const error = JSON.parse(text) as Record<string, unknown>
      if (typeof error['message'] !== 'string' || typeof error['code'] !== 'string')
        throw wrong('no error of the known form')
    }
  }
  for (const [what, requests, counts] of [
    ['reads', reads, { small: 500, full: 25_000 }],
    ['calls', calls, { small: 200, full: 8_000 }],
    ['writes', writes, { small: 250, full: 12_000 }],
  ] as const) {
    responses.clear()
    const outcome = await fc.check(fc.asyncProperty(requests, check), {
      seed,
      numRuns: effort(counts),
      endOnFailure: true,
    })
    t.equal(outcome.failed, false, fc.defaultReportMessage(outcome) ?? what)
    const total = [...responses.values()].reduce((sum, n) => sum + n, 0)
    t.ok(
      (responses.get('2xx') ?? 0) > total / 12,
      `${what}, seed ${seed}: ${JSON.stringify(Object.fromEntries(responses))}`,
    )
  }
  const texts = [...tenant.statementTexts()]
  t.ok(texts.length > 100, `${texts.length} statements`)
  // Keys and labels may name columns of the responses: as quoted identifiers.
  const outside = texts
    .map((text) => text.replaceAll(/"(?:[^"]|"")*"/g, '""'))
    .filter((text) => text.includes(canary) || text.replaceAll('""', '').includes('"'))
  t.same(outside, [], 'no value occurs in the text of a statement')
  t.ok(
    texts.some((text) => text.includes(canary)),
    'and the test distinguishes names from values',
  )
  t.same(
    await tenant.rows(
      `select (select count(*)::int from books) as books, (select count(*)::int from shelves) as shelves,
        (select count(*)::int from lines) as lines`,
    ),
    [{ books: 4, shelves: 3, lines: 0 }],
    'and no change that was rolled back remained',
  )
  t.same(runtime.errors, [], 'no internal error occurred')
})
