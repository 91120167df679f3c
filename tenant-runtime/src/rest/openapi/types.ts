// Describes Postgres' types in OpenAPI. Pure.

export interface TypeDescription {
  type?: 'integer' | 'number' | 'boolean' | 'string' | 'array'
  /** Postgres' own name of the type. */
  format: string
  items?: TypeDescription
}

const types: Record<string, TypeDescription['type']> = {
  smallint: 'integer',
  integer: 'integer',
  bigint: 'integer',
  real: 'number',
  'double precision': 'number',
  numeric: 'number',
  boolean: 'boolean',
}

export function describeType(name: string): TypeDescription {
  if (name.endsWith('[]')) return { type: 'array', format: name, items: describeType(name.slice(0, -2)) }
  // A value of these types may have any form.
  if (name === 'json' || name === 'jsonb') return { format: name }
  return { type: types[name] ?? 'string', format: name }
}
