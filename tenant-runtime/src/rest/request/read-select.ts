// Reads `select=`: columns, JSON paths, casts, aggregates, and other relations with their own selections. Pure.
import { readPath, type Path } from './json-path.ts'
import { Scanner } from './scanner.ts'

export const aggregates = ['count', 'sum', 'avg', 'min', 'max'] as const
export type Aggregate = (typeof aggregates)[number]

export interface SelectedField {
  kind: 'field'
  alias: string | undefined
  /** Undefined means whole rows, which only `count` allows. */
  path: Path | undefined
  cast: string | undefined
  aggregate: Aggregate | undefined
  aggregateCast: string | undefined
}

export interface SelectedRelation {
  kind: 'relation'
  alias: string | undefined
  /** A relation, a foreign key, or a column that references one. */
  target: string
  /** The choice between several relationships: the foreign key, its column, or the junction table. */
  hint: string | undefined
  /** `inner` selects only rows with a related row. */
  join: 'inner' | 'left' | undefined
  /** Whether the columns become columns of the parent. */
  isSpread: boolean
  select: Selected[]
}

export type Selected = { kind: 'all' } | SelectedField | SelectedRelation

/** The maximum depth. No legitimate query has a deeper tree. */
const maxDepth = 16
const typeName = /[A-Za-z_][A-Za-z0-9_ ]*(?:\[\])*/y

/**
 * Reads the text.
 * @throws RuntimeError INVALID_QUERY (PGRST100)
 */
export function readSelect(text: string): Selected[] {
  const scanner = new Scanner('select', text)
  const items = readItems(scanner, 0)
  if (!scanner.isAtEnd) scanner.fail('the value must end')
  return items
}

/** Whether the response has nothing of a relation with this selection: there are at most relations of the same kind. */
export function isEmptySelection(select: readonly Selected[]): boolean {
  return select.every((item) => item.kind === 'relation' && isEmptySelection(item.select))
}

/** Returns the selection of a plain column. */
export function fieldNamed(column: string): SelectedField {
  return {
    kind: 'field',
    alias: undefined,
    path: { column, steps: [] },
    cast: undefined,
    aggregate: undefined,
    aggregateCast: undefined,
  }
}

function readItems(scanner: Scanner, depth: number): Selected[] {
  if (depth > maxDepth) scanner.fail(`relations are nested deeper than ${maxDepth}`)
  const items: Selected[] = []
  scanner.skipBlanks()
  if (scanner.isAtEnd || scanner.sees(')')) return items
  do {
    scanner.skipBlanks()
    items.push(readItem(scanner, depth))
    scanner.skipBlanks()
  } while (scanner.skip(','))
  return items
}

function readItem(scanner: Scanner, depth: number): Selected {
  if (scanner.skip('*')) return { kind: 'all' }
  if (scanner.skip('...'))
    return readRelation(scanner, { alias: undefined, target: scanner.name(), isSpread: true }, depth)
  let alias: string | undefined
  let path = readPath(scanner)
  if (scanner.sees(':') && !scanner.sees('::')) {
    if (path.steps.length > 0) scanner.fail('a name is expected before ":"')
    scanner.at++
    alias = path.column
    path = readPath(scanner)
  }
  if (path.steps.length === 0) {
    if (path.column === 'count' && scanner.skip('()'))
      return {
        kind: 'field',
        alias,
        path: undefined,
        cast: undefined,
        aggregate: 'count',
        aggregateCast: readCast(scanner),
      }
    if (scanner.sees('(') || scanner.sees('!'))
      return readRelation(scanner, { alias, target: path.column, isSpread: false }, depth)
  }
  const cast = readCast(scanner)
  const aggregate = readAggregate(scanner)
  return {
    kind: 'field',
    alias,
    path,
    cast,
    aggregate,
    aggregateCast: aggregate === undefined ? undefined : readCast(scanner),
  }
}

function readRelation(
  scanner: Scanner,
  named: { alias: string | undefined; target: string; isSpread: boolean },
  depth: number,
): SelectedRelation {
  let [hint, join]: [string | undefined, SelectedRelation['join']] = [undefined, undefined]
  while (scanner.skip('!')) {
    const word = scanner.name()
    if (word === 'inner' || word === 'left') join = word
    else if (hint === undefined) hint = word
    else scanner.fail('only one hint is allowed')
  }
  scanner.expect('(')
  const select = readItems(scanner, depth + 1)
  scanner.expect(')')
  return { kind: 'relation', ...named, hint, join, select }
}

function readCast(scanner: Scanner): string | undefined {
  if (!scanner.skip('::')) return undefined
  return scanner.match(typeName)?.trim().toLowerCase() ?? scanner.fail('a type is expected')
}

function readAggregate(scanner: Scanner): Aggregate | undefined {
  if (!scanner.skip('.')) return undefined
  const aggregate = aggregates.find((name) => scanner.skip(`${name}()`))
  return aggregate ?? scanner.fail(`one of ${aggregates.map((name) => `${name}()`).join(', ')} is expected`)
}
