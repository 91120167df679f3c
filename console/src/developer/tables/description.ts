// The tables of the tenant, from the description of its REST interface.
import { useLoad, type Loaded } from '../../api/use-load.ts'

/** One column. Its name and its type may be any text. */
export interface TableColumn {
  name: string
  /** Postgres' name of the type. */
  type: string
  isKey: boolean
  isRequired: boolean
  default: string | undefined
  /** The table and column that it refers to. */
  refersTo: string | undefined
}

/** A table or view that the REST interface serves. */
export interface TableDescription {
  name: string
  columns: TableColumn[]
  isWritable: boolean
  /** Whether it belongs to the service, not to the tenant. */
  isOfService: boolean
}

interface Property {
  format: string
  description?: string
  default?: string
}

interface Body {
  paths?: Record<string, Record<string, unknown>>
  definitions?: Record<string, { required?: string[]; properties: Record<string, Property> }>
}

const ofService = new Set([
  'schemas',
  'storage_buckets',
  'storage_objects',
  'functions',
  'function_invocations',
  'event_log',
])

/** Loads the tables. The list is undefined where the tenant has replaced the description by one of its own. */
export function useTables(): Loaded<Body> & { tables: TableDescription[] | undefined } {
  const load = useLoad<Body>('/rest/v1/')
  return { ...load, tables: load.data === undefined ? undefined : tablesOf(load.data) }
}

function tablesOf({ paths = {}, definitions = {} }: Body): TableDescription[] {
  return Object.entries(definitions).map(([name, { required = [], properties }]) => ({
    name,
    columns: Object.entries(properties).map(([column, property]) => toColumn(column, property, required)),
    isWritable: paths[`/${name}`]?.['post'] !== undefined,
    isOfService: ofService.has(name),
  }))
}

function toColumn(name: string, property: Property, required: readonly string[]): TableColumn {
  const { format, description = '' } = property
  const target = /<fk table='(.*)' column='(.*)'\/>/s.exec(description)
  return {
    name,
    type: format,
    isKey: description.includes('<pk/>'),
    isRequired: required.includes(name),
    default: property.default,
    refersTo: target === null ? undefined : `${target[1]}.${target[2]}`,
  }
}
