// Gives the texts of a form or CSV the types of the collection's fields. Pure.
import type { Field } from '../registry/collection.ts'
import type { Relation } from '../registry/catalog.ts'
import type { RequestBody } from './request-body.ts'

/** Returns the body with the values of fields that a schema describes. Postgres converts those of other columns. */
export function typedBody({ columns }: Relation, body: RequestBody | undefined): RequestBody | undefined {
  if (body?.isText !== true || ![...columns.values()].some(({ field }) => field !== undefined)) return body
  const typed = (record: unknown): unknown =>
    typeof record === 'object' && record !== null
      ? Object.fromEntries(
          Object.entries(record).map(([name, value]: [string, unknown]) => [
            name,
            typedValue(columns.get(name)?.field, value),
          ]),
        )
      : record
  const value = Array.isArray(body.value) ? body.value.map(typed) : typed(body.value)
  return { text: JSON.stringify(value), value }
}

function typedValue(field: Field | undefined, value: unknown): unknown {
  if (typeof value !== 'string') return value
  switch (field?.type) {
    case 'number':
      return /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(value) ? Number(value) : value
    case 'boolean':
      return value === 'true' || (value === 'false' ? false : value)
    case 'json':
      try {
        return JSON.parse(value) as unknown
      } catch {
        return value
      }
    default:
      return value
  }
}
