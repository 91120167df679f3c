// Describes the interface in OpenAPI 2.0 as tools for PostgREST read it: a path for each relation and function. Pure.
import type { Catalog, Column, Relation, Routine } from '../registry/catalog.ts'
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
 * Describes the catalog.
 * @param basePath the path of the interface as its callers see it
 */
export function describeCatalog(catalog: Catalog, basePath: string): Json {
  const relations = [...catalog.relations.values()]
  return {
    swagger: '2.0',
    info: {
      title: 'Generated REST interface',
      description: 'Collections of the tenant, as its last reload published them',
      version: '1',
    },
    basePath,
    consumes: ['application/json'],
    produces: mediaTypes,
    paths: Object.fromEntries([
      [
        '/',
        {
          get: {
            tags: ['Introspection'],
            summary: 'This description',
            produces: ['application/openapi+json', 'application/json'],
            responses: { 200: ok },
          },
        },
      ],
      ...relations.map((relation) => [`/${relation.name}`, describeRelation(relation)]),
      ...relations
        .filter(({ key }) => key.length === 1)
        .map((relation) => [`/${relation.name}/{id}`, describeRecord(relation)]),
      ...[...catalog.routines.values()]
        .map(([routine]) => routine)
        .filter((routine) => routine !== undefined)
        .map((routine) => [`/rpc/${routine.name}`, describeRoutine(routine)]),
    ]),
    definitions: Object.fromEntries(relations.map((relation) => [relation.name, describeRows(catalog, relation)])),
    parameters: Object.fromEntries([...common, ...relations.flatMap(parametersOf)]),
  }
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

const common: [string, Json][] = [
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

function parametersOf({ name, columns }: Relation): [string, Json][] {
  return [
    [
      `body.${name}`,
      { name, in: 'body', description: name, required: false, schema: { $ref: `#/definitions/${name}` } },
    ],
    ...[...columns.keys()].map((column): [string, Json] => [
      `rowFilter.${name}.${column}`,
      inQuery(column, 'A filter: operator.value'),
    ]),
  ]
}

function describeRelation({ name, columns, writable, comment }: Relation): Json {
  const filters = [...columns.keys()].map((column) => reference(`rowFilter.${name}.${column}`))
  const about = { tags: [name], ...(comment === undefined ? {} : { summary: comment }) }
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

function describeRows({ references }: Catalog, relation: Relation): Json {
  const columns = [...relation.columns.values()]
  const required = columns.filter((column) => !column.nullable).map(({ name }) => name)
  const properties = columns.map((column) => {
    const target = references.find(
      ({ from, pairs }) => from === relation.name && pairs.length === 1 && pairs[0]?.[0] === column.name,
    )
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
  return {
    ...describeType(column.base),
    ...(column.default === undefined ? {} : { default: column.default }),
    ...(notes.length === 0 ? {} : { description: notes.join('\n') }),
  }
}

function describeRoutine({ name, arguments: list, isReading, comment }: Routine): Json {
  const about = {
    tags: [`(rpc) ${name}`],
    ...(comment === undefined ? {} : { summary: comment }),
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
