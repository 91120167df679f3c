// Random query strings: select, filters, trees, order and pages, mostly valid, some of them corrupted.
import fc, { type Arbitrary } from 'fast-check'
import {
  anyOperator,
  canaries,
  canary,
  good,
  operators,
  strange,
  tables,
  type Kind,
  type Table,
} from './random-tables.ts'

/** Memoizes an arbitrary, because creating it for each value takes most of the time. */
export function once<Key, More extends readonly unknown[], Made>(
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
export const operand = once((kind: Kind) =>
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

/** A condition such as `eq.1`, quoted inside a tree. */
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

/** A column, or a path in it. */
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

export const usually = <Value>(arbitrary: Arbitrary<Value>, otherwise: Arbitrary<Value>, weight = 10) =>
  fc.oneof({ weight, arbitrary }, otherwise)

export const items = once((table: Table, depth: number): Arbitrary<string> => {
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
    '::genre',
    '::size[]',
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

/** Parameters of the relation itself, or of one embedded in it. */
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

export const parameters = once((table: Table): Arbitrary<Parameters> => {
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
            .map(([alongside, inner, join, list, more]): Parameters => [
              ['select', `${alongside},${item}${join}(${inner})`],
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

/** Encodes the parameters as a query string; one in four has characters inserted or removed. */
export function encoded(list: Arbitrary<Parameters>): Arbitrary<string> {
  const spoilt = fc
    .tuple(list, fc.array(fc.tuple(fc.nat(), spoiling), { minLength: 1, maxLength: 3 }))
    .map(([all, spoilings]) => {
      const copy: Parameters = all.map(([key, value]) => [key, value])
      for (const [where, [at, put]] of spoilings) {
        const parameter = copy[where % Math.max(copy.length, 1)]
        if (parameter === undefined) continue
        const side = where % 5 === 0 ? 0 : 1
        const text = parameter[side]
        const location = at % (text.length + 1)
        parameter[side] =
          put === ''
            ? text.slice(0, location) + text.slice(location + 1)
            : text.slice(0, location) + put + text.slice(location)
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
