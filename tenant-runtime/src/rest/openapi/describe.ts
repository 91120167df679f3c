// Describes the interface in OpenAPI 2.0 as tools for PostgREST read it: a path for each relation and function. Pure.
import type { Catalog, Column, Reference, Relation, Routine } from '../registry/catalog.ts'
import { describeType, type TypeDescription } from './types.ts'

type Json = Record<string, unknown>

const reference = (name: string) => ({ $ref: `#/parameters/${name}` })
const ok = { description: 'OK' }
const mediaTypes = [
  'application/json',
  'application/vnd.pgrst.object+json;nulls=stripped',
  'application/vnd.pgrst.object+json',
  'text/csv',
]

/**
 * Describes the catalog as JSON, in parts: a catalog can have 100,000 columns.
 * @param basePath the path of the interface as its callers see it
 */
export function* describeCatalog(catalog: Catalog, basePath: string): Generator<string> {
  const relations = [...catalog.relations.values()]
  const targets = targetsOf(catalog)
  const head = {
    swagger: '2.0',
    info: {
      title: 'Generated REST interface',
      description: 'Collections of the tenant, as its last reload published them',
      version: '1',
    },
    basePath,
    consumes: ['application/json'],
    produces: mediaTypes,
  }
  yield `${JSON.stringify(head).slice(0, -1)},`
  yield* members('paths', pathsOf(catalog))
  yield ','
  yield* members(
    'definitions',
    mapped(relations, (relation) => [[relation.name, describeRows(targets, relation)]]),
  )
  yield ','
  yield* members(
    'parameters',
    mapped([undefined, ...relations], (of) => (of === undefined ? common : parametersOf(of))),
  )
  yield '}'
}

type Member = readonly [name: string, value: Json]

/** Yields a member whose value is an object, with a part for each member of that object. */
function* members(name: string, all: Iterable<Member>): Generator<string> {
  yield `${JSON.stringify(name)}:{`
  let between = ''
  for (const [of, value] of all) {
    yield `${between}${JSON.stringify(of)}:${JSON.stringify(value)}`
    between = ','
  }
  yield '}'
}

function* mapped<T>(values: Iterable<T>, membersOf: (value: T) => Iterable<Member>): Generator<Member> {
  for (const value of values) yield* membersOf(value)
}

function* pathsOf({ relations, routines }: Catalog): Generator<Member> {
  yield [
    '/',
    {
      get: {
        tags: ['Introspection'],
        summary: 'This description',
        produces: ['application/openapi+json', 'application/json'],
        responses: { 200: ok },
      },
    },
  ]
  for (const relation of relations.values()) yield [`/${relation.name}`, describeRelation(relation)]
  for (const relation of relations.values())
    if (relation.key.length === 1) yield [`/${relation.name}/{id}`, describeRecord(relation)]
  for (const [routine] of routines.values())
    if (routine !== undefined) yield [`/rpc/${routine.name}`, describeRoutine(routine)]
}

/** The targets of foreign keys with one column, by the table and the column. */
type Targets = ReadonlyMap<string, ReadonlyMap<string, Reference>>

function targetsOf({ references }: Catalog): Targets {
  const targets = new Map<string, Map<string, Reference>>()
  for (const reference of references) {
    const [pair, ...more] = reference.pairs
    if (pair === undefined || more.length > 0) continue
    let ofTable = targets.get(reference.from)
    if (ofTable === undefined) {
      ofTable = new Map()
      targets.set(reference.from, ofTable)
    }
    if (!ofTable.has(pair[0])) ofTable.set(pair[0], reference)
  }
  return targets
}

const header = (name: string, description: string, values?: string[]): Json => ({
  name,
  in: 'header',
  description,
  required: false,
  type: 'string',
  ...(values === undefined ? {} : { enum: values }),
})
const inQuery = (name: string, description: string): Json => ({
  name,
  in: 'query',
  description,
  required: false,
  type: 'string',
})

const common: readonly Member[] = [
  [
    'preferReturn',
    header('Prefer', 'The content of the response', ['return=representation', 'return=minimal', 'return=headers-only']),
  ],
  [
    'preferCount',
    header('Prefer', 'The method of counting the rows', ['count=exact', 'count=planned', 'count=estimated']),
  ],
  [
    'preferPost',
    header('Prefer', 'The content of the response, and the treatment of a record that already exists', [
      'return=representation',
      'return=minimal',
      'return=headers-only',
      'resolution=ignore-duplicates',
      'resolution=merge-duplicates',
    ]),
  ],
  ['select', inQuery('select', 'Columns, and other relations')],
  ['on_conflict', inQuery('on_conflict', 'Columns that determine a conflict')],
  ['order', inQuery('order', 'Ordering')],
  ['range', header('Range', 'Range of row numbers')],
  ['rangeUnit', { ...header('Range-Unit', 'Unit of Range'), default: 'items' }],
  ['offset', inQuery('offset', 'Number of rows to skip')],
  ['limit', inQuery('limit', 'Maximum number of rows')],
  ['id', { name: 'id', in: 'path', description: 'Value of the primary key', required: true, type: 'string' }],
]

function parametersOf({ name, columns }: Relation): Member[] {
  return [
    [
      `body.${name}`,
      { name, in: 'body', description: name, required: false, schema: { $ref: `#/definitions/${name}` } },
    ],
    ...[...columns.keys()].map((column): Member => [
      `rowFilter.${name}.${column}`,
      inQuery(column, 'A filter: operator.value'),
    ]),
  ]
}

function describeRelation({ name, columns, writable, comment }: Relation): Json {
  const filters = [...columns.keys()].map((column) => reference(`rowFilter.${name}.${column}`))
  const about = { tags: [name], ...described(comment) }
  const rows = { description: 'OK', schema: { type: 'array', items: { $ref: `#/definitions/${name}` } } }
  const reading = {
    get: {
      ...about,
      parameters: [
        ...filters,
        ...['select', 'order', 'range', 'rangeUnit', 'offset', 'limit', 'preferCount'].map(reference),
      ],
      responses: { 200: rows, 206: { description: 'Partial Content' } },
    },
  }
  if (writable === 'no') return reading
  return {
    ...reading,
    post: {
      ...about,
      parameters: [`body.${name}`, 'select', 'on_conflict', 'preferPost'].map(reference),
      responses: { 201: { description: 'Created' } },
    },
    patch: {
      ...about,
      parameters: [...filters, ...[`body.${name}`, 'preferReturn'].map(reference)],
      responses: { 204: { description: 'No Content' } },
    },
    delete: {
      ...about,
      parameters: [...filters, reference('preferReturn')],
      responses: { 204: { description: 'No Content' } },
    },
  }
}

/** Returns a comment's first line as a summary, and the lines after it as a description. */
function described(comment: string | undefined): Json {
  if (comment === undefined) return {}
  const [summary = '', ...lines] = comment.split('\n')
  const description = lines.join('\n').replace(/^\n+/, '')
  return { summary, ...(description === '' ? {} : { description }) }
}

function describeRecord({ name, writable }: Relation): Json {
  const responses = {
    200: { description: 'OK', schema: { $ref: `#/definitions/${name}` } },
    404: { description: 'Not Found' },
  }
  const reading = { get: { tags: [name], parameters: ['id', 'select'].map(reference), responses } }
  if (writable === 'no') return reading
  return {
    ...reading,
    patch: { tags: [name], parameters: ['id', `body.${name}`].map(reference), responses },
    delete: { tags: [name], parameters: [reference('id')], responses },
  }
}

function describeRows(targets: Targets, relation: Relation): Json {
  const columns = [...relation.columns.values()]
  const ofTable = targets.get(relation.name)
  const required = columns.filter((column) => !column.nullable).map(({ name }) => name)
  const properties = columns.map((column) => {
    const target = ofTable?.get(column.name)
    return [
      column.name,
      describeColumn(column, [
        ...(relation.key.includes(column.name) ? ['Note:\nThis is a Primary Key.<pk/>'] : []),
        ...(target === undefined
          ? []
          : [
              `Note:\nThis is a Foreign Key to \`${target.to}.${target.pairs[0]?.[1] ?? ''}\`.` +
                `<fk table='${target.to}' column='${target.pairs[0]?.[1] ?? ''}'/>`,
            ]),
      ]),
    ]
  })
  return {
    ...(relation.comment === undefined ? {} : { description: relation.comment }),
    ...(required.length === 0 ? {} : { required }),
    type: 'object',
    properties: Object.fromEntries(properties) as Json,
  }
}

function describeColumn(column: Column, notes: readonly string[]): TypeDescription & Json {
  const texts = [
    ...(column.comment === undefined ? [] : [column.comment]),
    ...(notes.length === 0 ? [] : [notes.join('\n')]),
  ]
  return {
    ...describeType(column.base),
    ...(column.default === undefined ? {} : { default: column.default }),
    ...(texts.length === 0 ? {} : { description: texts.join('\n\n') }),
  }
}

function describeRoutine({ name, arguments: list, isReading, comment }: Routine): Json {
  const about = {
    tags: [`(rpc) ${name}`],
    ...described(comment),
    responses: { 200: ok },
  }
  const named = list.filter((argument) => argument.name !== '')
  const properties = Object.fromEntries(named.map((argument) => [argument.name, describeType(argument.base)]))
  const required = list
    .filter(({ name, isOptional, isVariadic }) => name !== '' && !isOptional && !isVariadic)
    .map(({ name }) => name)
  const post = {
    ...about,
    parameters: [
      {
        name: 'args',
        in: 'body',
        required: true,
        schema: { type: 'object', ...(required.length === 0 ? {} : { required }), properties },
      },
    ],
  }
  if (!isReading) return { post }
  const parameters = named.map(({ name, base }) => ({
    name,
    in: 'query',
    required: required.includes(name),
    ...describeType(base),
  }))
  const get = { ...about, parameters }
  return { get, post }
}
