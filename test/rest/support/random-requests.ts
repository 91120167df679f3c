// Random requests for the tables and functions of the features' scene: mostly valid, some of them corrupted. Some
// values contain a canary, which no statement's text may contain.
import fc, { type Arbitrary } from 'fast-check'
import { encoded, items, once, operand, parameters, usually, type Parameters } from './random-queries.ts'
import { canaries, canary, functions, sample, tables, type Table } from './random-tables.ts'

export interface RandomRequest {
  method: string
  path: string
  headers: Record<string, string>
  body: string | undefined
}

const tableName = fc.constantFrom(...Object.keys(tables))
const accept = fc.constantFrom<Record<string, string>>(
  {},
  {},
  {},
  {},
  {},
  {},
  { accept: 'text/csv' },
  { accept: 'application/vnd.pgrst.object+json' },
  { accept: 'application/vnd.pgrst.array+json;nulls=stripped' },
  { accept: 'application/vnd.pgrst.plan' },
  { accept: 'application/vnd.pgrst.plan+json; for="text/csv"; options=analyze|wal|verbose;' },
)
const counting = fc.constantFrom('', '', '', 'count=exact', 'count=planned', 'count=estimated')

export const reads: Arbitrary<RandomRequest> = tableName.chain((name) =>
  fc
    .tuple(
      fc.constantFrom('GET', 'GET', 'GET', 'HEAD'),
      encoded(parameters(tables[name] ?? { columns: {}, relations: [] })),
      accept,
      counting,
      fc.constantFrom<Record<string, string>>({}, {}, {}, { range: '0-1' }, { range: '5-' }),
    )
    .map(([method, search, form, prefer, range]) => ({
      method,
      path: `/${encodeURIComponent(name)}?${search}`,
      headers: { ...form, ...range, ...(prefer === '' ? {} : { prefer }) },
      body: undefined,
    })),
)

const anyJson = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom<unknown>(...canaries) },
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom<unknown>(null, true, 1, 1.5, '', 'a\0b', '\ud800', [], {}, 9007199254740991),
)

const record = once(({ columns }: Table): Arbitrary<object> => {
  const entry = fc
    .constantFrom(...Object.entries(columns))
    .chain(([name, kind]) =>
      usually(fc.constantFrom(...sample[kind]), anyJson, 5).map((value): [string, unknown] => [
        name.startsWith('"') ? (JSON.parse(name) as string) : name,
        value,
      ]),
    )
  const spare = fc.tuple(fc.constantFrom('nothing', '', 'tenant_id', canary, 'constructor'), anyJson)
  return fc
    .tuple(fc.array(entry, { maxLength: 8 }), fc.array(spare, { maxLength: 1 }), fc.nat(9))
    .map(([entries, more, lucky]) => Object.fromEntries([...entries, ...(lucky === 0 ? more : [])]))
})

const body = once((table: Table) =>
  fc.oneof(
    { weight: 6, arbitrary: record(table).map((one) => JSON.stringify(one)) },
    { weight: 4, arbitrary: fc.array(record(table), { maxLength: 4 }).map((all) => JSON.stringify(all)) },
    { weight: 1, arbitrary: anyJson.map((value) => JSON.stringify(value)) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        '',
        '{',
        '[{]',
        '{"id":1}{"id":2}',
        '\ufeff{}',
        '{"id":1,"id":2}',
        '[[]]',
        '{"id":1e400}',
        `{"${canary}"`,
      ),
    },
  ),
)
/** Every change is rolled back, so that the data remains. */
const writing = fc
  .array(
    fc.constantFrom(
      'return=representation',
      'return=minimal',
      'return=headers-only',
      'resolution=merge-duplicates',
      'resolution=ignore-duplicates',
      'missing=default',
      'count=exact',
      'handling=strict',
      'max-affected=2',
    ),
    { maxLength: 4 },
  )
  .map((list) => ['tx=rollback', ...list].join(','))

export const writes: Arbitrary<RandomRequest> = tableName.chain((name) => {
  const table = tables[name] ?? { columns: {}, relations: [] }
  const [first = ''] = Object.keys(table.columns)
  const key = fc.constantFrom<Parameters>(
    [[first, 'eq.1']],
    [[first, 'eq.1']],
    [[first, 'not.is.null']],
    [],
    [['on_conflict', first]],
    [['columns', `${first},label`]],
  )
  return fc
    .tuple(
      fc.constantFrom('POST', 'POST', 'PATCH', 'PATCH', 'PUT', 'DELETE'),
      encoded(
        fc
          .tuple(
            key,
            usually(
              items(table, 1).map((value): Parameters => [['select', value]]),
              parameters(table),
              3,
            ),
            fc.boolean(),
          )
          .map(([some, more, alone]) => (alone ? some : [...some, ...more])),
      ),
      accept,
      writing,
      body(table),
    )
    .map(([method, search, form, prefer, text]) => ({
      method,
      path: `/${encodeURIComponent(name)}?${search}`,
      headers: { ...form, prefer, 'content-type': 'application/json' },
      body: method === 'DELETE' ? undefined : text,
    }))
})

export const calls: Arbitrary<RandomRequest> = fc.constantFrom(...functions).chain(([name, args, rows]) => {
  const table = rows === undefined ? undefined : tables[rows]
  const search =
    table === undefined
      ? fc.constantFrom<Parameters>([], [], [['limit', '1']], [['select', 'x']], [['x', canary]])
      : parameters(table)
  const given = fc.tuple(
    ...Object.entries(args).map(([key, kind]) =>
      fc
        .tuple(fc.nat(4), usually(operand(kind), operand('text')), usually(fc.constantFrom(...sample[kind]), anyJson))
        .map(([leave, text, value]) => (leave === 0 ? [] : [{ key, text, value }])),
    ),
  )
  return fc
    .tuple(
      fc.constantFrom('GET', 'POST', 'POST', 'HEAD'),
      given.map((list) => list.flat()),
      search,
      accept,
      writing,
      usually(
        fc.constant(undefined),
        anyJson.map((value) => JSON.stringify(value)),
        6,
      ),
    )
    .chain(([method, all, more, form, prefer, other]) => {
      const reading = method !== 'POST'
      return encoded(
        fc.constant([...(reading ? all.map(({ key, text }): [string, string] => [key, text]) : []), ...more]),
      ).map((text) => ({
        method,
        path: `/rpc/${name}?${text}`,
        headers: { ...form, prefer, ...(reading ? {} : { 'content-type': 'application/json' }) },
        body: reading
          ? undefined
          : (other ?? JSON.stringify(Object.fromEntries(all.map(({ key, value }) => [key, value])))),
      }))
    })
})
