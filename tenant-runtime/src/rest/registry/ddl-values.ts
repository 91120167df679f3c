// Values of a schema as SQL for statements without parameters: texts, defaults, casts. Pure.
import { identifier } from '../sql/names.ts'
import { isGenerated } from './check-value.ts'
import { sqlTypes, type Field, type FieldType, type SchemaDefinition } from './collection.ts'

/** Returns a literal that is independent of `standard_conforming_strings`. */
export function textLiteral(text: string): string {
  if (text.includes('\0')) throw new RangeError('A text of Postgres cannot have a NUL character.')
  const quoted = `'${text.replaceAll("'", "''")}'`
  return quoted.includes('\\') ? `E${quoted.replaceAll('\\', '\\\\')}` : quoted
}

/** Returns the column's default; undefined without one. */
export function defaultSql(field: Field, { policy }: SchemaDefinition): string | undefined {
  if (field.name === policy.ownerField) {
    // The caller that inserts is the owner, unless the service names another. A default cannot have a subquery.
    return `nullif(current_setting('app.user_id', true), '')${field.type === 'uuid' ? '::uuid' : ''}`
  }
  if (field.default === undefined) return field.primary && field.type === 'uuid' ? 'gen_random_uuid()' : undefined
  const text = typeof field.default === 'string' ? field.default : JSON.stringify(field.default)
  if (isGenerated(field)) return text
  return `${textLiteral(text)}::${sqlTypes[field.type]}`
}

/** Returns a column's values in another type. A value that cannot be converted causes an error. */
export function castSql(field: string, from: FieldType, to: FieldType): string {
  const column = identifier(field)
  if (from === 'boolean' && to === 'number') return `case when ${column} then 1 when not ${column} then 0 end`
  // Callers know the time in its JSON format.
  if (from === 'datetime' && to === 'string') return `to_jsonb(${column} at time zone 'UTC') #>> '{}' || '+00:00'`
  return `${column}::text::${sqlTypes[to]}`
}
