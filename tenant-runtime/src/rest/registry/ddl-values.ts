// Values of a schema as SQL, in statements that take no parameters: texts, defaults, casts. Pure.
import { identifier } from '../sql/names.ts'
import { isGenerated } from './check-value.ts'
import { sqlTypes, type Field, type FieldType, type SchemaDefinition } from './collection.ts'

/** The same whatever `standard_conforming_strings` says. */
export function textLiteral(text: string): string {
  if (text.includes('\0')) throw new RangeError('a text of Postgres holds no NUL')
  const quoted = `'${text.replaceAll("'", "''")}'`
  return quoted.includes('\\') ? `E${quoted.replaceAll('\\', '\\\\')}` : quoted
}

/** The column's default; undefined when it has none. */
export function defaultSql(field: Field, { policy }: SchemaDefinition): string | undefined {
  if (field.name === policy.ownerField) {
    // Who inserts owns, unless the service names another; a subquery can't stand in a default.
    return `nullif(current_setting('app.user_id', true), '')${field.type === 'uuid' ? '::uuid' : ''}`
  }
  if (field.default === undefined) return field.primary && field.type === 'uuid' ? 'gen_random_uuid()' : undefined
  const text = typeof field.default === 'string' ? field.default : JSON.stringify(field.default)
  if (isGenerated(field)) return text
  return `${textLiteral(text)}::${sqlTypes[field.type]}`
}

/** A column's values in another type; what does not fit fails. */
export function castSql(field: string, from: FieldType, to: FieldType): string {
  const column = identifier(field)
  if (from === 'boolean' && to === 'number') return `case when ${column} then 1 when not ${column} then 0 end`
  // As JSON writes it, which is how callers know it.
  if (from === 'datetime' && to === 'string') return `to_jsonb(${column} at time zone 'UTC') #>> '{}' || '+00:00'`
  return `${column}::text::${sqlTypes[to]}`
}
