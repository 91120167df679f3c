// Requests for the rows of a table: the path of a page, and the bodies of writes. Pure. Numbers and JSON pass through as texts, so
// that no digit is lost.
import type { TableColumn, TableDescription } from './description.ts'

/** A row as the page shows it: each value is a text, a boolean, or null. */
export type Row = Record<string, string | boolean | null>

/** A filter of a list: column, operator, value. */
export type Filter = [column: string, operator: string, value: string]

/** The order, the filters and the page of a list of rows. */
export interface RowsQuery {
  order: string | undefined
  isDescending: boolean
  filters: readonly Filter[]
  /** The number of the page, from 0. */
  page: number
}

/** Operators, with their texts. */
export const operators: [operator: string, text: string][] = [
  ['eq', 'equals'],
  ['neq', 'does not equal'],
  ['gt', 'is greater than'],
  ['gte', 'is at least'],
  ['lt', 'is less than'],
  ['lte', 'is at most'],
  ['ilike', 'matches (* is any text)'],
  ['in', 'is one of (a,b,c)'],
  ['is', 'is (null, not_null, true, false)'],
]

export const pageSize = 50

const exactTypes = new Set(['smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision', 'json', 'jsonb'])
const numberTypes = new Set(['smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision'])

/** Whether a value of the type is a number in JSON. */
export function isNumberType(type: string): boolean {
  return numberTypes.has(type)
}

/** Whether values of the type are short and are read as a whole. */
export function isWholeType(type: string): boolean {
  return isNumberType(type) || /^(?:uuid|boolean|date|time|timestamp)/.test(type)
}

/** Whether a value of the type is any JSON. */
export function isJsonType(type: string): boolean {
  return type === 'json' || type === 'jsonb'
}

/** Returns the path of a page of rows. */
export function rowsPath({ name, columns }: TableDescription, query: RowsQuery): string {
  const keys = columns.filter(({ isKey }) => isKey)
  const byKey = keys.map((key) => `${quoted(key.name)}.asc`)
  const order =
    query.order === undefined
      ? byKey
      : [
          `${quoted(query.order)}.${query.isDescending ? 'desc' : 'asc'}`,
          ...keys.filter((key) => key.name !== query.order).map((key) => `${quoted(key.name)}.asc`),
        ]
  const parameters = new URLSearchParams([
    ['select', columns.map(selected).join(',')],
    ...(order.length === 0 ? [] : [['order', order.join(',')]]),
    ...query.filters.map(([column, operator, value]) => [
      quoted(column),
      `${operator}.${operator === 'in' ? `(${value})` : value}`,
    ]),
    ['limit', String(pageSize)],
    ['offset', String(query.page * pageSize)],
  ])
  return `/rest/v1/${encodeURIComponent(name)}?${parameters.toString()}`
}

/** Returns the path of a row; undefined for a table without a primary key. */
export function rowPath({ name, columns }: TableDescription, row: Row): string | undefined {
  const keys = columns.filter(({ isKey }) => isKey)
  const [key, ...others] = keys
  if (key === undefined) return undefined
  const path = `/rest/v1/${encodeURIComponent(name)}`
  if (others.length === 0) return `${path}/${encodeURIComponent(String(row[key.name]))}`
  const parameters = new URLSearchParams(keys.map((one) => [quoted(one.name), `eq.${String(row[one.name])}`]))
  return `${path}?${parameters.toString()}`
}

/** Returns the text of a value in a body. @throws SyntaxError for an invalid JSON */
export function jsonOf(column: TableColumn, text: string): string {
  if (column.type === 'boolean' && (text === 'true' || text === 'false')) return text
  if (isNumberType(column.type) && /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(text.trim())) return text.trim()
  if (isJsonType(column.type)) {
    JSON.parse(text)
    return text
  }
  return JSON.stringify(text)
}

/** Returns a body of the members, whose values are JSON already. */
export function bodyOf(members: readonly [name: string, json: string][]): string {
  return `{${members.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')}}`
}

function selected({ name, type }: TableColumn): string {
  return exactTypes.has(type) || type.endsWith('[]') ? `${quoted(name)}::text` : quoted(name)
}

/** Returns a name as the grammar of the REST interface has it. */
function quoted(name: string): string {
  return /^[a-z_]\w*$/i.test(name) ? name : `"${name.replaceAll(/["\\]/g, String.raw`\$&`)}"`
}
