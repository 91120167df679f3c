// Computes TypeScript types from the OpenAPI 2.0 description of a tenant's REST interface. It has no side effects.
import { isJsonObject, type JsonObject } from './json.ts'

/** Tables of the service. Only `schemas` can be changed through the interface. */
const serviceTables = new Set([
  'event_log',
  'function_invocations',
  'functions',
  'schemas',
  'storage_buckets',
  'storage_objects',
])

const header = `export type Json = string | number | boolean | null | { [key: string]: Json | undefined } | Json[]
`

/** Returns the module with the type \`Database\`. */
export function databaseTypes(description: JsonObject): string {
  const definitions = isJsonObject(description.definitions) ? description.definitions : {}
  const paths = isJsonObject(description.paths) ? description.paths : {}
  const tables = Object.keys(definitions)
    .filter((name) => !serviceTables.has(name) && isTable(paths[`/${name}`]))
    .toSorted()
    .map((name) => table(name, definitions[name]))
  const functions = Object.keys(paths)
    .filter((path) => path.startsWith('/rpc/'))
    .toSorted()
    .map((path) => functionType(path.slice('/rpc/'.length), paths[path]))
  return `${header}
export type Database = {
  public: {
    Tables: ${record(tables, 6)}
    Views: { [name in never]: never }
    Functions: ${record(functions, 6)}
    Enums: { [name in never]: never }
    CompositeTypes: { [name in never]: never }
  }
}
`
}

function isTable(path: unknown): boolean {
  return isJsonObject(path) && 'get' in path
}

/** Returns the type of a table: what is read, inserted and updated. */
function table(name: string, definition: unknown): string {
  const properties = isJsonObject(definition) && isJsonObject(definition.properties) ? definition.properties : {}
  const required = new Set(isJsonObject(definition) && Array.isArray(definition.required) ? definition.required : [])
  const columns = Object.entries(properties).map(([column, property]) => {
    const isRequired = required.has(column)
    const type = `${typeOf(property)}${isRequired ? '' : ' | null'}`
    const hasDefault = isJsonObject(property) && 'default' in property
    return { column: key(column), type, isOptional: !isRequired || hasDefault }
  })
  const lines = (suffix: (isOptional: boolean) => string) =>
    record(
      columns.map(({ column, type, isOptional }) => `${column}${suffix(isOptional)}: ${type}`),
      10,
    )
  return `${key(name)}: {
        Row: ${lines(() => '')}
        Insert: ${lines((isOptional) => (isOptional ? '?' : ''))}
        Update: ${lines(() => '?')}
        Relationships: []
      }`
}

/** Returns the type of a function that the interface calls. The description does not state what it returns. */
function functionType(name: string, path: unknown): string {
  const post = isJsonObject(path) && isJsonObject(path.post) ? path.post : {}
  const parameters = Array.isArray(post.parameters) ? post.parameters : []
  const body = parameters.find((one): one is JsonObject => isJsonObject(one) && one.in === 'body')
  const schema = isJsonObject(body?.schema) ? body.schema : {}
  const properties = isJsonObject(schema.properties) ? schema.properties : {}
  const required = new Set(Array.isArray(schema.required) ? schema.required : [])
  const names = Object.keys(properties)
  const args =
    names.length === 0
      ? '{ [name in never]: never }'
      : record(
          names.map((one) => `${key(one)}${required.has(one) ? '' : '?'}: ${typeOf(properties[one])}`),
          10,
        )
  return `${key(name)}: {
        Args: ${args}
        Returns: Json
      }`
}

function typeOf(property: unknown): string {
  if (!isJsonObject(property)) return 'Json'
  const { type, format, items } = property
  if (Array.isArray(property.enum) && property.enum.every((one) => typeof one === 'string'))
    return property.enum.map((one) => JSON.stringify(one)).join(' | ')
  if (format === 'json' || format === 'jsonb') return 'Json'
  if (type === 'array') return `(${typeOf(items)})[]`
  if (type === 'integer' || type === 'number') return 'number'
  if (type === 'string' || type === 'boolean') return type
  return 'Json'
}

function record(members: readonly string[], indent: number): string {
  if (members.length === 0) return '{ [name in never]: never }'
  const space = ' '.repeat(indent)
  return `{\n${members.map((member) => `${space}${member}`).join('\n')}\n${' '.repeat(indent - 2)}}`
}

/** Returns a name as the key of a type, in quotes unless it is an identifier. */
function key(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name)
}
