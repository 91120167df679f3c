// The types that `::` may name: Postgres' own, and those of the home. Their names become part of the SQL, so no others are
// allowed. Types such as `regclass` are not among them, because they show names of other tenants' objects. Pure.
import { restError } from '../rest-error.ts'
import { identifier } from '../sql/names.ts'

const types: ReadonlySet<string> = new Set([
  'bit',
  'bit varying',
  'bool',
  'boolean',
  'box',
  'bpchar',
  'bytea',
  'char',
  'character',
  'character varying',
  'cidr',
  'circle',
  'date',
  'datemultirange',
  'daterange',
  'decimal',
  'double precision',
  'float',
  'float4',
  'float8',
  'inet',
  'int',
  'int2',
  'int4',
  'int4multirange',
  'int4range',
  'int8',
  'int8multirange',
  'int8range',
  'integer',
  'bigint',
  'interval',
  'json',
  'jsonb',
  'jsonpath',
  'line',
  'lseg',
  'macaddr',
  'macaddr8',
  'money',
  'numeric',
  'nummultirange',
  'numrange',
  'oid',
  'path',
  'pg_lsn',
  'point',
  'polygon',
  'real',
  'smallint',
  'text',
  'time',
  'time with time zone',
  'time without time zone',
  'timetz',
  'timestamp',
  'timestamptz',
  'timestamp with time zone',
  'timestamp without time zone',
  'tsmultirange',
  'tsquery',
  'tsrange',
  'tstzmultirange',
  'tstzrange',
  'tsvector',
  'uuid',
  'varbit',
  'varchar',
  'xml',
])

/**
 * Returns a type as it is written in SQL.
 * @param own the types of the home
 * @throws RuntimeError INVALID_QUERY (42704) for any other
 */
export function castType(name: string | undefined, own: ReadonlySet<string>): string | undefined {
  if (name === undefined) return undefined
  const element = name.replace(/(?:\[\])+$/, '')
  if (own.has(element)) return `${identifier(element)}${name.slice(element.length)}`
  // Postgres also names the arrays of a type with an underscore: `_int4`.
  if (types.has(element) || types.has(name.replace(/^_(?=\w+$)/, ''))) return name
  throw restError('INVALID_QUERY', { code: '42704', message: `type "${name}" does not exist` })
}

/** Whether a cast may run code of the tenant: the checks of a domain, or the function of a cast. */
export function isCastOfHome(cast: string | undefined): boolean {
  return cast?.startsWith('"') === true
}
