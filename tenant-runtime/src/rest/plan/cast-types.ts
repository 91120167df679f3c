// The types that `::` may name. Their names become part of the SQL, so no others are allowed. Pure.
import { restError } from '../rest-error.ts'

const types: ReadonlySet<string> = new Set([
  'bool',
  'boolean',
  'bytea',
  'char',
  'character',
  'character varying',
  'date',
  'decimal',
  'double precision',
  'float',
  'float4',
  'float8',
  'int',
  'int2',
  'int4',
  'int8',
  'integer',
  'bigint',
  'smallint',
  'interval',
  'json',
  'jsonb',
  'numeric',
  'real',
  'text',
  'time',
  'timetz',
  'timestamp',
  'timestamptz',
  'timestamp with time zone',
  'timestamp without time zone',
  'tsvector',
  'uuid',
  'varchar',
  'inet',
  'cidr',
])

/**
 * Checks a type's name.
 * @throws RuntimeError INVALID_QUERY (42704) for any other
 */
export function castType(name: string | undefined): string | undefined {
  if (name === undefined) return undefined
  if (types.has(name.replace(/\[\]$/, ''))) return name
  throw restError('INVALID_QUERY', {
    code: '42704',
    message: `Invalid query parameter "select": values cannot be cast to the type "${name}".`,
  })
}
