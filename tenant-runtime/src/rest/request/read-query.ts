// Reads the query string of PostgREST's clients: the parameters of the relation itself and of relations embedded in it.
// Pure.
import { readSteps, type Path } from './json-path.ts'
import { looksLikeFilter, readFilter, readGroup, type Condition } from './read-conditions.ts'
import { readSelect, type Selected } from './read-select.ts'
import { notSatisfiable } from './read-range.ts'
import { badQuery, Scanner } from './scanner.ts'

export interface Order {
  /** The to-one relation by whose column the rows are ordered. */
  relation: string | undefined
  path: Path
  direction: 'asc' | 'desc'
  nulls: 'first' | 'last' | undefined
}

/** The parameters of the relation itself, or of one embedded in it. */
export interface Part {
  conditions: Condition[]
  order: Order[]
  limit: number | undefined
  offset: number | undefined
}

export interface Query {
  /** Undefined means all columns. */
  select: Selected[] | undefined
  own: Part
  /** Parameters of embedded relations by their location: the names that were joined by dots. */
  embedded: { location: string[]; part: Part }[]
  /** The keys of the body's objects that count (`columns=`). */
  columns: string[] | undefined
  onConflict: string[] | undefined
  /** The end of the last page; empty for the first page. */
  cursor: string | undefined
  /** The arguments of a function, by their names. */
  arguments: [name: string, value: string][]
}

const maxParameters = 1_000

/**
 * Reads the query string.
 * @param argumentNames names of a called function's arguments, and whether a call must contain them. Such parameters, and
 * others that do not look like filters, are its arguments. If one looks like a filter, it is a filter where the call has
 * another value of the argument, or need not have one
 * @throws RuntimeError INVALID_QUERY (PGRST100) that names the invalid parameter and the position
 */
export function readQuery(search: string, argumentNames?: ReadonlyMap<string, boolean>): Query {
  const query = emptyQuery()
  if (search === '') return query
  const parameters = new URLSearchParams(search)
  const isFilter = (key: string, value: string) =>
    looksLikeFilter(value) &&
    (argumentNames?.get(key) === false || parameters.getAll(key).some((other) => !looksLikeFilter(other)))
  let count = 0
  for (const [key, value] of parameters) {
    if (++count > maxParameters) throw badQuery(key, `at most ${maxParameters} parameters are allowed`)
    if (value.includes('\0') || key.includes('\0')) throw badQuery(key.replaceAll('\0', '?'), 'it has a NUL character')
    if (argumentNames?.has(key) === true && !isFilter(key, value)) query.arguments.push([key, value])
    else readParameter(query, key, value, argumentNames !== undefined)
  }
  return query
}

/** Returns the query for a whole relation. */
export function emptyQuery(): Query {
  return {
    select: undefined,
    own: emptyPart(),
    embedded: [],
    columns: undefined,
    onConflict: undefined,
    cursor: undefined,
    arguments: [],
  }
}

function emptyPart(): Part {
  return { conditions: [], order: [], limit: undefined, offset: undefined }
}

function readParameter(query: Query, key: string, value: string, isCall: boolean): void {
  switch (key) {
    case 'select':
      // An empty selection means all columns.
      query.select = value.trim() === '' ? undefined : readSelect(value)
      return
    case 'columns':
      query.columns = readNames(key, value)
      return
    case 'on_conflict':
      query.onConflict = readNames(key, value)
      return
    case 'cursor':
      // A column may have this name. No cursor looks like a filter.
      if (looksLikeFilter(value)) break
      query.cursor = value
      return
  }
  const scanner = new Scanner(key, key)
  const names = [scanner.name()]
  let steps = readSteps(scanner)
  while (steps.length === 0 && scanner.skip('.')) {
    names.push(scanner.name())
    steps = readSteps(scanner)
  }
  if (!scanner.isAtEnd)
    scanner.fail('a filter must be named by a column, or by an embedded relation, a dot and its column,')
  const last = names.pop() ?? ''
  const isPlain = steps.length === 0
  const isGroup = isPlain && (last === 'and' || last === 'or')
  const negated = isGroup && names.at(-1) === 'not'
  if (negated) names.pop()
  const part = partAt(query, names)
  if (isGroup) part.conditions.push(readGroup(key, last, negated, value))
  else if (isPlain && last === 'order') part.order = readOrders(key, value)
  else if (isPlain && last === 'limit') part.limit = readLimit(key, value)
  else if (isPlain && last === 'offset') part.offset = Math.max(readCount(key, value), 0)
  else if (isCall && isPlain && names.length === 0 && !looksLikeFilter(value)) query.arguments.push([last, value])
  else part.conditions.push(readFilter(key, { column: last, steps }, value))
}

function partAt(query: Query, location: string[]): Part {
  if (location.length === 0) return query.own
  const known = query.embedded.find(
    (entry) => entry.location.length === location.length && entry.location.every((name, n) => name === location[n]),
  )
  if (known !== undefined) return known.part
  const part = emptyPart()
  query.embedded.push({ location, part })
  return part
}

/** Reads names such as `a,"b c"`. */
function readNames(key: string, value: string): string[] {
  if (value === '') return []
  const scanner = new Scanner(key, value)
  const names: string[] = []
  do names.push(scanner.name())
  while (scanner.skip(','))
  if (!scanner.isAtEnd) scanner.fail('names must be separated by commas')
  return names
}

function readOrders(key: string, value: string): Order[] {
  const scanner = new Scanner(key, value)
  const orders: Order[] = []
  do orders.push(readOrder(scanner))
  while (scanner.skip(','))
  if (!scanner.isAtEnd) scanner.fail('asc, desc, nullsfirst or nullslast is expected')
  return orders
}

function readOrder(scanner: Scanner): Order {
  let relation: string | undefined
  let path: Path = { column: scanner.name(), steps: readSteps(scanner) }
  if (path.steps.length === 0 && scanner.skip('(')) {
    relation = path.column
    path = { column: scanner.name(), steps: readSteps(scanner) }
    scanner.expect(')')
  }
  scanner.skipBlanks()
  const order: Order = { relation, path, direction: 'asc', nulls: undefined }
  while (scanner.skip('.')) {
    if (scanner.skip('nullsfirst')) order.nulls = 'first'
    else if (scanner.skip('nullslast')) order.nulls = 'last'
    else if (scanner.skip('asc')) order.direction = 'asc'
    else if (scanner.skip('desc')) order.direction = 'desc'
    else scanner.fail('asc, desc, nullsfirst or nullslast is expected')
  }
  scanner.skipBlanks()
  return order
}

function readLimit(key: string, value: string): number {
  const limit = readCount(key, value)
  if (limit < 0) throw notSatisfiable('Limit should be greater than or equal to zero.')
  return limit
}

function readCount(key: string, value: string): number {
  if (!/^-?\d{1,15}$/.test(value)) throw badQuery(key, `"${value}" must be a whole number`)
  return Number(value)
}
