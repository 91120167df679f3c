// Random queries of two related tables, each as a query string and as SQL that was written independently of the interface.
import fc, { type Arbitrary } from 'fast-check'

export interface ModelQuery {
  /** The path and the query string below `/rest/v1`. */
  url: string
  /** A statement with one row and one column, `body`: the expected JSON. */
  sql: string
}

type Kind = 'integer' | 'numeric' | 'text' | 'date' | 'boolean' | 'texts' | 'range' | 'json'

interface Model {
  name: string
  columns: Record<string, Kind>
}

const people: Model = {
  name: 'people',
  columns: {
    id: 'integer',
    name: 'text',
    age: 'integer',
    height: 'numeric',
    born: 'date',
    active: 'boolean',
    tags: 'texts',
    span: 'range',
    data: 'json',
    team: 'integer',
  },
}
const teams: Model = {
  name: 'teams',
  columns: { id: 'integer', name: 'text', level: 'integer', open: 'boolean', info: 'json' },
}

export const modelTables = `
create table teams (id integer primary key, name text, level integer, open boolean, info jsonb);
create table people (id integer primary key, name text, age integer, height numeric, born date, active boolean, tags text[],
  span int4range, data jsonb, team integer references teams);
alter table teams enable row level security;
alter table people enable row level security;
create policy allow_all on teams using (true);
create policy allow_all on people using (true);
insert into teams values (1, 'red', 1, true, '{"a": 1}'), (2, 'blue', null, false, null), (3, 'Red', 2, null, '{"a": "x", "b": [1]}'),
  (4, null, 1, true, '{}');
insert into people
  select n, case when n % 7 > 0 then (array['ann', 'Bob', 'c,d', '(e)', 'f"g', '', 'ä*'])[n % 7] end,
    case when n % 5 > 0 then n % 9 end, n / 4.0, date '2020-02-27' + n % 4, (array[true, false, null])[1 + n % 3],
    case when n % 4 > 0 then array_remove(array['x', case when n % 2 = 0 then 'y z' end, case when n % 3 = 0 then 'w,"q' end], null) end,
    case when n % 6 > 0 then int4range(n % 6, n % 6 + n % 4) end,
    case n % 5 when 0 then null when 1 then jsonb_build_object('a', n % 3, 'b', jsonb_build_array(n, 'x'))
      else jsonb_build_object('a', 'k' || n % 2, 'c', jsonb_build_object('d', n % 4 = 0)) end,
    nullif(n % 5, 0)
  from generate_series(1, 40) n;
`

const operands: Record<Kind, readonly string[]> = {
  integer: ['0', '1', '2', '3', '8', '-1', ' 4 ', 'x', '99999999999'],
  numeric: ['1', '2.5', '2.50', '1e1', '-0', 'NaN', '1,5'],
  text: ['ann', 'Bob', 'c,d', '(e)', 'f"g', '', 'ä*', 'a\\b', "o'k", 'null'],
  date: ['2020-02-28', '2020-02-29', '2020-03-01', '2021-02-29', 'today-ish'],
  boolean: ['true', 'false', 't', 'maybe'],
  texts: ['{}', '{x}', '{x,"y z"}', '{"w,\\"q"}', '{y', 'x'],
  range: ['[1,3)', '(1,4]', 'empty', '[2,)', '[3,1)'],
  json: ['{"a": 1}', '{}', '[1]', '{"c": {"d": true}}', '{'],
}
const comparing = ['eq', 'neq', 'gt', 'gte', 'lt', 'lte', 'isdistinct']
const operators: Record<Kind, readonly string[]> = {
  integer: [...comparing, 'in', 'is', 'like'],
  numeric: [...comparing, 'in', 'is'],
  text: [...comparing, 'in', 'is', 'like', 'ilike', 'match'],
  date: [...comparing, 'in', 'is', 'imatch'],
  boolean: ['eq', 'neq', 'isdistinct', 'is'],
  texts: ['eq', 'cs', 'cd', 'ov', 'is'],
  range: ['eq', 'cs', 'cd', 'ov', 'sl', 'sr', 'adj', 'is'],
  json: ['cs', 'cd', 'is'],
}
const infix: Record<string, string> = {
  eq: '=',
  neq: '<>',
  gt: '>',
  gte: '>=',
  lt: '<',
  lte: '<=',
  isdistinct: 'is distinct from',
  like: 'like',
  ilike: 'ilike',
  match: '~',
  imatch: '~*',
  cs: '@>',
  cd: '<@',
  ov: '&&',
  sl: '<<',
  sr: '>>',
  adj: '-|-',
}

const literal = (text: string) => `'${text.replaceAll("'", "''")}'`
const quoted = (text: string) => `"${text.replaceAll(/["\\]/g, '\\$&')}"`

/** A column or a path in its JSON: as the interface and as SQL name it. */
interface ModelPath {
  kind: Kind
  url: string
  sql: (table: string) => string
}

const paths = ({ columns }: Model): Arbitrary<ModelPath> => {
  const plain = Object.entries(columns).map(([name, kind]): ModelPath => ({
    kind,
    url: name,
    sql: (table) => `${table}."${name}"`,
  }))
  const inside = Object.entries(columns)
    .filter(([, kind]) => kind === 'json')
    .flatMap(([name]): ModelPath[] => [
      { kind: 'text', url: `${name}->>a`, sql: (table) => `(${table}."${name}"->>'a')` },
      { kind: 'json', url: `${name}->c`, sql: (table) => `(${table}."${name}"->'c')` },
      { kind: 'text', url: `${name}->b->>-1`, sql: (table) => `(${table}."${name}"->'b'->>-1)` },
    ])
  return fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...plain) }, fc.constantFrom(...inside))
}

interface Condition {
  /** The key and the value of a parameter. */
  parameter: [key: string, value: string]
  /** The text inside a tree. */
  inTree: string
  sql: (table: string) => string
}

const conditions = (model: Model): Arbitrary<Condition> =>
  paths(model).chain(({ kind, url, sql }) =>
    fc
      .tuple(
        fc.constantFrom(...operators[kind]),
        fc.boolean(),
        fc.array(fc.constantFrom(...operands[kind]), { minLength: 1, maxLength: 3 }),
        fc.constantFrom('null', 'not_null', ...(kind === 'boolean' ? ['true', 'false', 'unknown'] : [])),
      )
      .map(([operator, negated, values, word]) => {
        const [value = ''] = values
        const text =
          operator === 'in'
            ? `in.(${values.map(quoted).join(',')})`
            : operator === 'is'
              ? `is.${word}`
              : `${operator}.${value}`
        const ofTree = operator === 'in' || operator === 'is' ? text : `${operator}.${quoted(value)}`
        const test = (table: string) => {
          const path = sql(table)
          if (operator === 'in') return `${path} in (${values.map(literal).join(', ')})`
          if (operator === 'is') return `${path} is ${word.replace('_', ' ')}`
          const operand = operator === 'like' || operator === 'ilike' ? value.replaceAll('*', '%') : value
          return `${path} ${infix[operator] ?? ''} ${literal(operand)}`
        }
        const not = negated ? 'not.' : ''
        return {
          parameter: [url, not + text],
          inTree: `${url}.${not}${ofTree}`,
          sql: (table) => (negated ? `not (${test(table)})` : `(${test(table)})`),
        }
      }),
  )

/** A condition, or a tree of conditions. */
const trees = (model: Model): Arbitrary<Condition> =>
  fc.oneof(
    { weight: 3, arbitrary: conditions(model) },
    fc
      .tuple(fc.constantFrom('and', 'or'), fc.boolean(), fc.array(conditions(model), { minLength: 1, maxLength: 3 }))
      .map(([kind, negated, members]): Condition => {
        const inner = `(${members.map(({ inTree }) => inTree).join(',')})`
        return {
          parameter: [negated ? `not.${kind}` : kind, inner],
          inTree: `${negated ? 'not.' : ''}${kind}${inner}`,
          sql: (table) => `${negated ? 'not ' : ''}(${members.map(({ sql }) => sql(table)).join(` ${kind} `)})`,
        }
      }),
  )

interface Part {
  url: [key: string, value: string][]
  where: (table: string) => string[]
  orderBy: (table: string) => string
  limit: string
}

/** Filters, an order that the primary key makes total, and a page. */
const parts = (model: Model): Arbitrary<Part> =>
  fc
    .tuple(
      fc.array(trees(model), { maxLength: 2 }),
      fc.array(
        fc.tuple(paths(model), fc.constantFrom('', '.asc', '.desc'), fc.constantFrom('', '.nullsfirst', '.nullslast')),
        {
          maxLength: 2,
        },
      ),
      fc.option(fc.nat(5)),
      fc.option(fc.nat(3)),
    )
    .map(([filters, orders, limit, offset]) => {
      const sorted = orders.filter(({ 0: { kind } }) => kind !== 'json')
      const words = (text: string) => text.replace('.', ' ').replace('nulls', 'nulls ')
      return {
        url: [
          ...filters.map(({ parameter }) => parameter),
          ['order', [...sorted.map(([{ url }, way, nulls]) => url + way + nulls), 'id'].join(',')],
          ...(limit === null ? [] : [['limit', String(limit)] as [string, string]]),
          ...(offset === null ? [] : [['offset', String(offset)] as [string, string]]),
        ],
        where: (table) => filters.map(({ sql }) => sql(table)),
        orderBy: (table) =>
          [...sorted.map(([{ sql }, way, nulls]) => sql(table) + words(way) + words(nulls)), `${table}.id`].join(', '),
        limit: `${limit === null ? '' : ` limit ${limit}`}${offset === null ? '' : ` offset ${offset}`}`,
      }
    })

interface Item {
  url: string
  sql: (table: string) => string
}

const items = (model: Model): Arbitrary<Item[]> =>
  fc.array(fc.tuple(paths(model), fc.constantFrom('', '', '::text')), { minLength: 1, maxLength: 4 }).map((list) =>
    list.map(([{ url, sql }, cast], n) => ({
      url: `k${n}:${url}${cast}`,
      sql: (table) => `${sql(table)}${cast} as k${n}`,
    })),
  )

const whereSql = (list: readonly string[]) => (list.length === 0 ? '' : ` where ${list.join(' and ')}`)
const rowsSql = (rows: string) => `select coalesce(json_agg(r), '[]')::text as body from (${rows}) r`
const urlOf = (name: string, parameters: readonly (readonly [string, string])[]) =>
  `/${name}?${parameters.map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`).join('&')}`

const lists = fc.constantFrom(people, teams).chain((model) =>
  fc.tuple(items(model), parts(model)).map(([list, part]): ModelQuery => ({
    url: urlOf(model.name, [['select', list.map(({ url }) => url).join(',')], ...part.url]),
    sql: rowsSql(
      `select ${list.map(({ sql }) => sql('t')).join(', ')} from ${model.name} t${whereSql(part.where('t'))}` +
        ` order by ${part.orderBy('t')}${part.limit}`,
    ),
  })),
)

/** A list with the related rows of each row, or only those that have related rows. */
const related = fc
  .constantFrom([people, teams, true] as const, [teams, people, false] as const)
  .chain(([model, other, isToOne]) =>
    fc
      .tuple(items(model), parts(model), items(other), parts(other), fc.boolean())
      .map(([list, part, inner, innerPart, isInner]): ModelQuery => {
        const join = isToOne ? 'o.id = t.team' : 'o.team = t.id'
        const conditions = whereSql([join, ...innerPart.where('o')])
        const columns = inner.map(({ sql }) => sql('o')).join(', ')
        const value = isToOne
          ? `(select row_to_json(e) from (select ${columns} from ${other.name} o${conditions}) e)`
          : `(select coalesce(json_agg(e), '[]') from (select ${columns} from ${other.name} o${conditions}` +
            ` order by ${innerPart.orderBy('o')}${innerPart.limit}) e)`
        const page = isToOne ? '' : innerPart.limit
        const found = isInner ? [`exists (select from ${other.name} o${conditions}${page})`] : []
        const own = innerPart.url.filter(([key]) => !isToOne || !['order', 'limit', 'offset'].includes(key))
        return {
          url: urlOf(model.name, [
            [
              'select',
              [
                ...list.map(({ url }) => url),
                `x:${other.name}${isInner ? '!inner' : ''}(${inner.map(({ url }) => url).join(',')})`,
              ].join(','),
            ],
            ...part.url,
            ...own.map(([key, value]) => [`x.${key}`, value] as const),
          ]),
          sql: rowsSql(
            `select ${list.map(({ sql }) => sql('t')).join(', ')}, ${value} as x from ${model.name} t` +
              `${whereSql([...part.where('t'), ...found])} order by ${part.orderBy('t')}${part.limit}`,
          ),
        }
      }),
  )

const groups = fc
  .tuple(
    fc.uniqueArray(fc.constantFrom('name', 'active', 'born', 'team'), { maxLength: 2 }),
    fc.uniqueArray(fc.constantFrom('age.sum()', 'height.avg()', 'age.max()', 'born.min()', 'name.count()', 'count()'), {
      minLength: 1,
      maxLength: 3,
    }),
    fc.array(trees(people), { maxLength: 2 }),
  )
  .map(([by, aggregates, filters]): ModelQuery => {
    const calls = aggregates.map((text, n) => {
      const [column, name = 'count'] = text === 'count()' ? [undefined, 'count'] : text.replace('()', '').split('.')
      return { url: `a${n}:${text}`, sql: `${name}(${column === undefined ? '*' : `t.${column}`}) as a${n}` }
    })
    const columns = by.map((name) => `t.${name}`)
    return {
      url: urlOf('people', [
        ['select', [...by, ...calls.map(({ url }) => url)].join(',')],
        ...filters.map(({ parameter }) => parameter),
        ...(by.length === 0 ? [] : [['order', by.join(',')] as const]),
      ]),
      sql: rowsSql(
        `select ${[...columns, ...calls.map(({ sql }) => sql)].join(', ')} from people t${whereSql(filters.map(({ sql }) => sql('t')))}` +
          (by.length === 0 ? '' : ` group by ${columns.join(', ')} order by ${columns.join(', ')}`),
      ),
    }
  })

export const modelQueries: Arbitrary<ModelQuery> = fc.oneof(
  { weight: 3, arbitrary: lists },
  { weight: 3, arbitrary: related },
  { weight: 1, arbitrary: groups },
)
