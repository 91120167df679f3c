// The query string of a list, an update or a delete, as PostgREST's clients write it. Pure: text in, values out.
import { restError } from '../rest-error.ts'

export const operators = ['eq', 'neq', 'gt', 'gte', 'lt', 'lte', 'like', 'ilike', 'in', 'is'] as const
export type Operator = (typeof operators)[number]

export interface Filter {
  column: string
  operator: Operator
  negated: boolean
  /** One text, but for `in`. */
  values: string[]
}

export interface Order {
  column: string
  direction: 'asc' | 'desc'
  nulls: 'first' | 'last' | undefined
}

export interface Query {
  /** Undefined: all columns. */
  select: string[] | undefined
  filters: Filter[]
  order: Order[]
  limit: number | undefined
  offset: number
  /** `columns=`: which keys of the body's objects are meant. */
  columns: string[] | undefined
}

/** @throws RuntimeError INVALID_QUERY (PGRST100) that says which parameter is wrong */
export function readQuery(search: string): Query {
  const query: Query = { select: undefined, filters: [], order: [], limit: undefined, offset: 0, columns: undefined }
  for (const [key, value] of new URLSearchParams(search)) {
    switch (key) {
      case 'select':
        query.select = readSelect(value)
        break
      case 'order':
        query.order = value.split(',').map(readOrder)
        break
      case 'limit':
        query.limit = readCount(key, value)
        break
      case 'offset':
        query.offset = readCount(key, value)
        break
      case 'columns':
        query.columns = splitList(value).map(unquote)
        break
      case 'or':
      case 'and':
      case 'not.or':
      case 'not.and':
      case 'on_conflict':
        throw badQuery(key, 'is not supported yet')
      default:
        query.filters.push(readFilter(key, value))
    }
  }
  return query
}

function readSelect(value: string): string[] | undefined {
  const items = splitList(value).map((item) => unquote(item.trim()))
  if (items.length === 0 || (items.length === 1 && (items[0] === '*' || items[0] === ''))) return undefined
  for (const item of items) if (/[():>]/.test(item)) throw badQuery('select', `"${item}" is not supported yet: name columns`)
  return items
}

function readOrder(text: string): Order {
  const [column = '', ...modifiers] = splitDots(text)
  const order: Order = { column: unquote(column), direction: 'asc', nulls: undefined }
  for (const modifier of modifiers) {
    if (modifier === 'asc' || modifier === 'desc') order.direction = modifier
    else if (modifier === 'nullsfirst') order.nulls = 'first'
    else if (modifier === 'nullslast') order.nulls = 'last'
    else throw badQuery('order', `"${text}": "${modifier}" is none of asc, desc, nullsfirst, nullslast`)
  }
  if (order.column === '') throw badQuery('order', `"${text}" names no column`)
  return order
}

function readCount(key: string, value: string): number {
  if (!/^\d{1,15}$/.test(value)) throw badQuery(key, `"${value}" must be a whole number`)
  return Number(value)
}

function readFilter(key: string, value: string): Filter {
  const negated = value.startsWith('not.')
  const rest = negated ? value.slice(4) : value
  const dot = rest.indexOf('.')
  const operator = operators.find((candidate) => candidate === rest.slice(0, dot))
  if (dot < 0 || operator === undefined) {
    throw badQuery(key, `"${value}" begins with no operator; known: ${operators.join(', ')}`)
  }
  const operand = rest.slice(dot + 1)
  if (operator === 'in') return { column: unquote(key), operator, negated, values: readIn(key, operand) }
  if (operator === 'is' && !/^(null|not_null|true|false|unknown)$/i.test(operand)) {
    throw badQuery(key, `"is.${operand}": is takes null, not_null, true, false or unknown`)
  }
  return { column: unquote(key), operator, negated, values: [operand] }
}

/** `(a,"b,c",d)`: an element is quoted only if its closing quote is followed by a comma or the end. */
function readIn(key: string, text: string): string[] {
  if (!text.startsWith('(') || !text.endsWith(')')) throw badQuery(key, '"in" takes a list in parentheses')
  const list = text.slice(1, -1)
  return list === '' ? [] : splitList(list).map(unquote)
}

/** Splits at commas outside quotes. */
function splitList(text: string): string[] {
  const parts: string[] = []
  let begin = 0
  while (begin <= text.length) {
    const closing = text[begin] === '"' ? closingQuote(text, begin) : -1
    const comma = text.indexOf(',', closing < 0 ? begin : closing)
    const end = comma < 0 ? text.length : comma
    parts.push(text.slice(begin, end))
    if (comma < 0) break
    begin = comma + 1
  }
  return parts
}

/** Index of the quote that ends the one at `from` and is followed by a comma or the end; -1 without one. */
function closingQuote(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '"' && (at + 1 === text.length || text[at + 1] === ',')) return at
  }
  return -1
}

function splitDots(text: string): string[] {
  if (!text.startsWith('"')) return text.split('.')
  const end = text.indexOf('"', 1)
  return end < 0 ? [text] : [text.slice(0, end + 1), ...text.slice(end + 1).split('.').slice(1)]
}

function unquote(text: string): string {
  if (text.length < 2 || !text.startsWith('"') || !text.endsWith('"')) return text
  return text.slice(1, -1).replaceAll(/\\(.)/g, '$1')
}

function badQuery(key: string, problem: string) {
  return restError('INVALID_QUERY', { code: 'PGRST100', message: `query parameter "${key}": ${problem}` })
}
