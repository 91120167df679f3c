// Random requests over the tables and functions of the features' scene: mostly what the grammar allows, some of it spoilt. What
// a caller gives as a value has a canary in it now and then, which no statement's text may hold.
import fc, { type Arbitrary } from 'fast-check'

/** Ends what it can: a quote of any kind, a comment, an escape. */
export const canary = 'cn4ry'
const canaries = [
  canary,
  `${canary}'`,
  `'${canary}`,
  `"${canary}"`,
  `${canary}";--`,
  `\\${canary}\\`,
  `$1${canary}`,
  `{${canary}}`,
  `${canary}/*`,
  `(${canary})`,
  `%${canary}*`,
]

type Kind = 'number' | 'text' | 'boolean' | 'date' | 'array' | 'range' | 'json' | 'search' | 'composite' | 'enum'

interface Table {
  columns: Record<string, Kind>
  /** As `select` names them, and where they lead. */
  relations: readonly (readonly [item: string, name: string, table: string])[]
}

export const tables: Record<string, Table> = {
  books: {
    columns: {
      id: 'number',
      title: 'text',
      author_id: 'number',
      isbn: 'text',
      genre: 'enum',
      price: 'number',
      pages: 'number',
      available: 'boolean',
      tags: 'array',
      years: 'range',
      size: 'composite',
      extra: 'json',
      added: 'date',
      words: 'search',
      gross: 'number',
    },
    relations: [
      ['authors!author_id', 'authors', 'authors'],
      ['editor:authors!editor_id', 'editor', 'authors'],
      ['author_id', 'author_id', 'authors'],
      ['shelves', 'shelves', 'shelves'],
      ['editions', 'editions', 'editions'],
      ['authors', 'authors', 'authors'],
    ],
  },
  authors: {
    columns: { id: 'number', name: 'text', born: 'date', mentor_id: 'number', prefs: 'json' },
    relations: [
      ['books!author_id', 'books', 'books'],
      ['profiles', 'profiles', 'profiles'],
      ['authors', 'authors', 'authors'],
      ['mentor_id', 'mentor_id', 'authors'],
    ],
  },
  profiles: { columns: { author_id: 'number', bio: 'text' }, relations: [['authors', 'authors', 'authors']] },
  shelves: {
    columns: { id: 'number', label: 'text', hall: 'text' },
    relations: [
      ['books', 'books', 'books'],
      ['book_shelves', 'book_shelves', 'book_shelves'],
    ],
  },
  book_shelves: {
    columns: { book_id: 'number', shelf_id: 'number' },
    relations: [
      ['books', 'books', 'books'],
      ['shelves', 'shelves', 'shelves'],
    ],
  },
  editions: {
    columns: { book_id: 'number', number: 'number', format: 'text' },
    relations: [
      ['books', 'books', 'books'],
      ['sales', 'sales', 'sales'],
    ],
  },
  sales: {
    columns: { id: 'number', book_id: 'number', number: 'number', amount: 'number', sold_on: 'date' },
    relations: [['editions', 'editions', 'editions']],
  },
  'odd names': {
    columns: {
      '"a,b"': 'number',
      '"c.d"': 'text',
      '"e\\"f"': 'text',
      '"g h"': 'text',
      '"(i)"': 'text',
      '"j:k"': 'text',
      is_new: 'text',
      '"select"': 'text',
    },
    relations: [],
  },
  events: { columns: { id: 'number', kind: 'text', at: 'date' }, relations: [] },
  cheap_books: { columns: { id: 'number', title: 'text', price: 'number', author_id: 'number' }, relations: [] },
  lines: { columns: { entry: 'text', at: 'number' }, relations: [] },
  notes: { columns: { id: 'text', owner: 'text', text: 'text', rank: 'number' }, relations: [] },
}

const comparing = ['eq', 'neq', 'gt', 'gte', 'lt', 'lte', 'isdistinct', 'eq(any)', 'gt(all)', 'lte(any)']
const operators: Record<Kind, string[]> = {
  number: [...comparing, 'in', 'is'],
  text: [
    ...comparing,
    'like',
    'ilike',
    'match',
    'imatch',
    'like(any)',
    'ilike(all)',
    'in',
    'fts',
    'plfts(english)',
    'wfts(simple)',
    'is',
  ],
  boolean: ['eq', 'is', 'neq'],
  date: [...comparing, 'in'],
  array: ['cs', 'cd', 'ov', 'eq', 'in', 'is'],
  range: ['cs', 'cd', 'ov', 'sl', 'sr', 'nxl', 'nxr', 'adj', 'eq'],
  json: ['cs', 'cd', 'eq', 'is', 'fts', 'phfts(english)'],
  search: ['fts', 'plfts', 'phfts', 'wfts(english)', 'fts(german)'],
  composite: ['is', 'eq'],
  enum: ['eq', 'in', 'gt', 'like'],
}
const anyOperator = [...new Set(Object.values(operators).flat()), 'no', 'EQ', 'fts(no)', 'eq(some)', '']
const good: Record<Kind, string[]> = {
  number: ['1', '2', '-1.5', '9007199254740993', '0', '1e3'],
  text: ['x', 'The*', '*dogs', 'low', 'a b', 'fox', '^F', '[a-z]+'],
  boolean: ['true', 'false', 'null'],
  date: ['2026-01-01', '1900-01-01T00:00:00Z', 'infinity'],
  array: ['{red}', '{}', '{"with, comma",blue}'],
  range: ['[1990,2000)', 'empty', '(,5]'],
  json: ['{"a":1}', '[1]', '1', '"x"'],
  search: ['fox', 'fox & quick', 'lazy or dog'],
  composite: ['null', '(1,2)'],
  enum: ['novel', 'poetry'],
}
const strange = [
  '',
  'null',
  '()',
  '(',
  '(,)',
  '("',
  '{',
  '}',
  '[',
  '"',
  '\\',
  '%',
  '*',
  "'",
  '..',
  'NaN',
  '1e999',
  '99999999999999999999',
  '{"a":"\\u0000"}',
  '\0',
  '294277-01-01',
  '{{1},{2}}',
  'x'.repeat(2_000),
  '(1',
  '((((',
]

/** Each made once: to make them anew for each value takes most of the time. */
function once<Key, More extends readonly unknown[], Made>(
  make: (key: Key, ...more: More) => Made,
): (key: Key, ...more: More) => Made {
  const made = new Map<Key, Map<string, Made>>()
  return (key, ...more) => {
    const ofKey = made.get(key) ?? new Map<string, Made>()
    made.set(key, ofKey)
    const name = more.join()
    const known = ofKey.get(name) ?? make(key, ...more)
    ofKey.set(name, known)
    return known
  }
}

const anything = fc.string({ maxLength: 8, unit: 'binary' })
const operand = once((kind: Kind) =>
  fc.oneof(
    { weight: 20, arbitrary: fc.constantFrom(...good[kind]) },
    { weight: kind === 'text' || kind === 'search' ? 20 : 2, arbitrary: fc.constantFrom(...canaries) },
    { weight: 1, arbitrary: fc.constantFrom(...strange) },
    { weight: 1, arbitrary: anything },
  ),
)
const listed = once((kind: Kind) =>
  fc
    .array(operand(kind), { maxLength: 4 })
    .map(
      (values) =>
        `(${values.map((value) => (/[,()"\\]/.test(value) ? `"${value.replaceAll(/["\\]/g, '\\$&')}"` : value)).join(',')})`,
    ),
)

/** `eq.1`; `quoted` inside of a tree. */
const condition = once((kind: Kind, quoted: boolean): Arbitrary<string> => {
  const operator = fc.oneof(
    { weight: 40, arbitrary: fc.constantFrom(...operators[kind]) },
    { weight: 1, arbitrary: fc.constantFrom(...anyOperator) },
  )
  const negation = fc.oneof({ weight: 4, arbitrary: fc.constant('') }, fc.constant('not.'))
  return fc.tuple(negation, operator).chain(([not, name]) => {
    const value =
      name === 'in'
        ? listed(kind)
        : name === 'is'
          ? fc.constantFrom('null', 'not_null', 'true', 'unknown', 'NULL', canary)
          : name.includes('(a')
            ? fc
                .array(operand(kind), { maxLength: 3 })
                .map((values) => `{${values.map((value) => `"${value.replaceAll(/["\\]/g, '\\$&')}"`).join(',')}}`)
            : operand(kind).map((text) =>
                quoted && /[,()"\\]/.test(text) && !/^[[{(]/.test(text)
                  ? `"${text.replaceAll(/["\\]/g, '\\$&')}"`
                  : text,
              )
    return value.map((text) => `${not}${name}.${text}`)
  })
})

const steps = fc
  .array(
    fc.tuple(
      fc.constantFrom('->', '->>'),
      fc.oneof(
        fc.constantFrom('a', 'b', 'c', 'lang', 'list', 'deep', '0', '1', '-1', 'width', '"x y"'),
        fc.constantFrom(`"${canary}'"`, canary, `"${canary}\\""`),
      ),
    ),
    { minLength: 1, maxLength: 3 },
  )
  .map((parts) =>
    parts.map(([arrow, key], n) => (n < parts.length - 1 && arrow === '->>' ? '->' : arrow) + key).join(''),
  )

/** A column, or a place in it. */
const path = once(({ columns }: Table): Arbitrary<readonly [text: string, kind: Kind]> => {
  const all = Object.entries(columns)
  const plain = fc.constantFrom(...all)
  const structured = all.filter(([, kind]) => kind === 'json' || kind === 'array' || kind === 'composite')
  const inside = fc
    .tuple(fc.constantFrom(...(structured.length === 0 ? all : structured)), steps)
    .map(([[name], text]): [string, Kind] => [`${name}${text}`, text.includes('->>') ? 'text' : 'json'])
  const odd = fc.constantFrom<[string, Kind]>(
    ['nothing', 'text'],
    ['count', 'number'],
    ['tenant_id', 'text'],
    ['xmin', 'number'],
    ['ctid', 'text'],
  )
  return fc.oneof(
    { weight: 40, arbitrary: plain },
    { weight: structured.length === 0 ? 1 : 16, arbitrary: inside },
    odd,
  )
})

const usually = <Value>(arbitrary: Arbitrary<Value>, otherwise: Arbitrary<Value>, weight = 10) =>
  fc.oneof({ weight, arbitrary }, otherwise)

const items = once((table: Table, depth: number): Arbitrary<string> => {
  const names = fc.constantFrom('', '', '', 'n:', 'x y:', '"q\\"":', 'count:')
  const casts = fc.constantFrom(
    '',
    '',
    '',
    '',
    '',
    '',
    '',
    '',
    '',
    '::text',
    '::text',
    '::jsonb',
    '::int',
    '::regclass',
  )
  const value = fc.tuple(names, path(table), casts).map(([name, [text], cast]) => `${name}${text}${cast}`)
  const aggregated = fc.oneof(
    fc.constantFrom('count()', 'n:count()', 'count'),
    fc
      .tuple(
        names,
        path(table),
        fc.constantFrom('', '::numeric', '::text'),
        fc.constantFrom('max', 'min', 'count', 'sum', 'avg'),
        casts,
      )
      .map(([name, [text], cast, aggregate, then]) => `${name}${text}${cast}.${aggregate}()${then}`),
  )
  const relation =
    depth === 0 || table.relations.length === 0
      ? value
      : fc
          .constantFrom(...table.relations)
          .chain(([item, , target]) =>
            fc
              .tuple(
                fc.constantFrom('', '', '', '...'),
                fc.constantFrom('', '', '!inner', '!left'),
                usually(items(tables[target] ?? table, depth - 1), fc.constant(''), 6),
              )
              .map(
                ([spread, join, inner]) =>
                  `${spread}${spread === '' ? item : item.replace(/^[a-z]+:/, '')}${join}(${inner})`,
              ),
          )
  const item = fc.oneof(
    { weight: 5, arbitrary: value },
    { weight: 1, arbitrary: fc.constant('*') },
    { weight: 1, arbitrary: aggregated },
    { weight: 4, arbitrary: relation },
  )
  return fc.array(item, { minLength: 1, maxLength: 4 }).map((list) => list.join(','))
})

const tree = once((table: Table, depth: number): Arbitrary<string> => {
  const leaf = path(table).chain(([text, kind]) => condition(kind, true).map((test) => `${text}.${test}`))
  const member =
    depth === 0
      ? leaf
      : fc.oneof(
          { weight: 3, arbitrary: leaf },
          fc
            .tuple(fc.constantFrom('and', 'or', 'not.and', 'not.or'), tree(table, depth - 1))
            .map(([kind, inner]) => `${kind}${inner}`),
        )
  return fc.array(member, { minLength: 1, maxLength: 3 }).map((members) => `(${members.join(',')})`)
})

const orders = once((table: Table): Arbitrary<string> =>
  fc
    .array(fc.tuple(path(table), fc.constantFrom('', '.asc', '.desc', '.nullsfirst', '.desc.nullslast')), {
      minLength: 1,
      maxLength: 3,
    })
    .map((list) => list.map(([[text], way]) => text + way).join(',')),
)

export type Parameters = [key: string, value: string][]

/** Of the relation itself, or of one embedded in it. */
const own = once((table: Table, prefix: string): Arbitrary<[string, string]> => {
  const count = usually(fc.constantFrom('0', '1', '5', '1000000'), fc.constantFrom('-1', 'x', '99999999999999999', ''))
  return fc.oneof(
    {
      weight: 5,
      arbitrary: path(table).chain(([text, kind]) =>
        condition(kind, false).map((test): [string, string] => [prefix + text, test]),
      ),
    },
    {
      weight: 2,
      arbitrary: fc
        .tuple(fc.constantFrom('or', 'and', 'not.or', 'not.and'), tree(table, 2))
        .map(([key, value]): [string, string] => [prefix + key, value]),
    },
    orders(table).map((value): [string, string] => [`${prefix}order`, value]),
    fc.tuple(fc.constantFrom('limit', 'offset'), count).map(([key, value]): [string, string] => [prefix + key, value]),
  )
})

const parameters = once((table: Table): Arbitrary<Parameters> => {
  const plain = fc
    .tuple(fc.array(items(table, 2), { maxLength: 1 }), fc.array(own(table, ''), { maxLength: 2 }))
    .map(([select, more]): Parameters => [...select.map((value): [string, string] => ['select', value]), ...more])
  const paged = fc
    .tuple(
      plain,
      fc.constantFrom<[string, string]>(['cursor', ''], ['cursor', canary], ['columns', 'id'], ['on_conflict', 'id']),
    )
    .map(([list, one]): Parameters => [...list, one])
  const related =
    table.relations.length === 0
      ? plain
      : fc.constantFrom(...table.relations).chain(([item, name, target]) => {
          const other = tables[target] ?? table
          const about = fc.oneof(
            { weight: 4, arbitrary: own(other, `${name}.`) },
            fc.constantFrom<[string, string]>(
              [name, 'is.null'],
              [name, 'not.is.null'],
              ['or', `(${name}.is.null,${Object.keys(table.columns)[0] ?? ''}.eq.1)`],
            ),
            path(other).map(([text]): [string, string] => ['order', `${name}(${text}).desc`]),
          )
          return fc
            .tuple(
              items(table, 1),
              usually(items(other, 1), fc.constant(''), 4),
              fc.constantFrom('', '!inner'),
              fc.array(about, { minLength: 1, maxLength: 3 }),
              fc.array(own(table, ''), { maxLength: 1 }),
            )
            .map(([beside, inner, join, list, more]): Parameters => [
              ['select', `${beside},${item}${join}(${inner})`],
              ...list,
              ...more,
            ])
        })
  return fc.oneof({ weight: 5, arbitrary: plain }, { weight: 4, arbitrary: related }, { weight: 1, arbitrary: paged })
})

const spoiling = fc.tuple(
  fc.nat(),
  fc.constantFrom(
    '',
    ',',
    '.',
    ':',
    '(',
    ')',
    '!',
    '"',
    '->',
    '->>',
    '*',
    '{',
    '}',
    '\\',
    '...',
    '::',
    'not.',
    'select',
    '%',
    ' ',
  ),
)

/** As a query string; one in four has something put in, or taken out. */
function encoded(list: Arbitrary<Parameters>): Arbitrary<string> {
  const spoilt = fc
    .tuple(list, fc.array(fc.tuple(fc.nat(), spoiling), { minLength: 1, maxLength: 3 }))
    .map(([all, spoilings]) => {
      const copy: Parameters = all.map(([key, value]) => [key, value])
      for (const [where, [at, put]] of spoilings) {
        const parameter = copy[where % Math.max(copy.length, 1)]
        if (parameter === undefined) continue
        const side = where % 5 === 0 ? 0 : 1
        const text = parameter[side]
        const place = at % (text.length + 1)
        parameter[side] =
          put === '' ? text.slice(0, place) + text.slice(place + 1) : text.slice(0, place) + put + text.slice(place)
      }
      return copy
    })
  return fc
    .oneof({ weight: 4, arbitrary: list }, spoilt)
    .map((all) =>
      all
        .map(([key, value]) => `${encodeURIComponent(key.toWellFormed())}=${encodeURIComponent(value.toWellFormed())}`)
        .join('&'),
    )
}

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
  { accept: 'text/csv' },
  { accept: 'application/vnd.pgrst.object+json' },
  { accept: 'application/vnd.pgrst.array+json;nulls=stripped' },
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
const sample: Record<Kind, unknown[]> = {
  number: [1, 2, 77, 1.5, '78'],
  text: ['x', ...canaries],
  boolean: [true, null],
  date: ['2026-01-01'],
  array: [['a', canary], '{b}', []],
  range: ['[1,2)'],
  json: [{ a: canary }, [1, canary], { [`${canary}'`]: 1 }],
  search: ['x'],
  composite: [{ width: 1 }, null],
  enum: ['novel'],
}

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
/** Everything is undone, so that what is there stays. */
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

const functions: [name: string, args: Record<string, Kind>, rows: string | undefined][] = [
  ['add', { a: 'number', b: 'number' }, undefined],
  ['lengths', {}, undefined],
  ['first_book', {}, 'books'],
  ['books_of', { author: 'number' }, 'books'],
  ['totals', {}, 'sales'],
  ['titles', {}, 'lines'],
  ['pair', { n: 'number' }, 'lines'],
  ['single', {}, undefined],
  ['join_all', { parts: 'array' }, undefined],
  ['area', { side: 'number', width: 'number', height: 'number' }, undefined],
  ['twice', { n: 'number' }, undefined],
  ['whole', {}, undefined],
  ['add_shelf', { id: 'number', label: 'text' }, 'shelves'],
  ['echo_numeric', { v: 'number' }, undefined],
  ['echo_json', { v: 'json' }, undefined],
  ['echo_texts', { v: 'array' }, undefined],
  ['echo_size', { v: 'composite' }, undefined],
  ['untyped_set', {}, undefined],
  ['fail', { code: 'text', what: 'text' }, undefined],
  ['broken', {}, undefined],
  ['touch', {}, undefined],
  ['near', { a: 'number', b: 'number' }, undefined],
  ['nowhere', {}, undefined],
]

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
