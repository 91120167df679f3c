// Reads filters: one per parameter (`age=gt.18`), or a tree (`or=(a.eq.1,and(b.gt.2,c.is.null))`). Pure.
import { readSteps, type Path } from './json-path.ts'
import { Scanner } from './scanner.ts'

const comparing = ['eq', 'neq', 'gt', 'gte', 'lt', 'lte', 'like', 'ilike', 'match', 'imatch', 'isdistinct'] as const
const searching = ['fts', 'plfts', 'phfts', 'wfts'] as const
const containing = ['cs', 'cd', 'ov', 'sl', 'sr', 'nxl', 'nxr', 'adj'] as const
export const operators = [...comparing, ...searching, ...containing, 'in', 'is'] as const
export type Operator = (typeof operators)[number]

/** The operators that may have `(any)` or `(all)`. */
const quantifiable: readonly Operator[] = ['eq', 'gt', 'gte', 'lt', 'lte', 'like', 'ilike', 'match', 'imatch']
const isWords = ['null', 'not_null', 'true', 'false', 'unknown'] as const
export type IsWord = (typeof isWords)[number]

export type Test =
  | {
      operator: Exclude<Operator, 'in' | 'is'>
      value: string
      quantifier: 'any' | 'all' | undefined
      /** The language of a full-text search. */ language: string | undefined
    }
  | { operator: 'in'; values: string[] }
  | { operator: 'is'; word: IsWord }

export interface Filter {
  kind: 'filter'
  path: Path
  negated: boolean
  test: Test
}

export interface Group {
  kind: 'and' | 'or'
  negated: boolean
  members: Condition[]
}

export type Condition = Filter | Group

const maxDepth = 16
const word = /[a-z]+/y
const groupBegin = /(?:and|or)[ \t]*(?=\()/y

/** Whether the text begins like a filter. */
export function looksLikeFilter(value: string): boolean {
  const name = /^(?:not\.)?([a-z]+)[.(]/.exec(value)?.[1]
  return operators.some((operator) => operator === name)
}

/**
 * Reads a filter.
 * @param value the parameter's whole value
 * @throws RuntimeError INVALID_QUERY (PGRST100)
 */
export function readFilter(key: string, path: Path, value: string): Filter {
  const scanner = new Scanner(key, value)
  const negated = scanner.skip('not.')
  const test = readTest(scanner, (scanner) => scanner.rest())
  if (!scanner.isAtEnd) scanner.fail('the value must end after the list')
  return { kind: 'filter', path, negated, test }
}

/** Reads the `(…)` of `or=` or `and=`. */
export function readGroup(key: string, kind: Group['kind'], negated: boolean, value: string): Group {
  const scanner = new Scanner(key, value)
  scanner.skipBlanks()
  const group = { kind, negated, members: readMembers(scanner, 0) }
  if (!scanner.isAtEnd) scanner.fail('the value must end after the list')
  return group
}

function readMembers(scanner: Scanner, depth: number): Condition[] {
  if (depth > maxDepth) scanner.fail(`conditions are nested deeper than ${maxDepth}`)
  scanner.expect('(')
  const members: Condition[] = []
  do {
    scanner.skipBlanks()
    members.push(readMember(scanner, depth))
    scanner.skipBlanks()
  } while (scanner.skip(','))
  scanner.expect(')')
  scanner.skipBlanks()
  return members
}

function readMember(scanner: Scanner, depth: number): Condition {
  const begin = scanner.at
  const negated = scanner.skip('not.')
  const word = scanner.match(groupBegin)
  if (word !== undefined) {
    const kind = word.startsWith('and') ? 'and' : 'or'
    return { kind, negated, members: readMembers(scanner, depth + 1) }
  }
  scanner.at = begin
  const path = { column: scanner.name(), steps: readSteps(scanner) }
  scanner.skipBlanks()
  scanner.expect('.')
  const isNegated = scanner.skip('not.')
  return { kind: 'filter', path, negated: isNegated, test: readTest(scanner, readMemberValue) }
}

/** Reads up to the comma or the parenthesis that ends the condition. Quotes and braces may contain them. */
function readMemberValue(scanner: Scanner): string {
  const begin = scanner.at
  if (scanner.sees('"')) {
    const text = scanner.quoted()
    if (scanner.isAtEnd || scanner.sees(',') || scanner.sees(')')) return text
    scanner.at = begin
  }
  if (scanner.sees('{') || scanner.sees('[') || scanner.sees('(')) {
    const end = closing(scanner.text, begin)
    if (end >= 0) {
      scanner.at = end + 1
      if (scanner.isAtEnd || scanner.sees(',') || scanner.sees(')')) return scanner.text.slice(begin, end + 1)
      scanner.at = begin
    }
  }
  while (!scanner.isAtEnd && !scanner.sees(',') && !scanner.sees(')')) scanner.at++
  return scanner.text.slice(begin, scanner.at)
}

/**
 * Returns the position of the bracket that closes the one at `begin`. Ranges may end with another kind than they begin
 * with.
 */
function closing(text: string, begin: number): number {
  let depth = 0
  for (let at = begin; at < text.length; at++) {
    const character = text.charAt(at)
    if (character === '"') {
      for (at++; at < text.length && text.charAt(at) !== '"'; at++) if (text.charAt(at) === '\\') at++
    } else if (character === '{' || character === '[' || character === '(') depth++
    else if ((character === '}' || character === ']' || character === ')') && --depth === 0) return at
  }
  return -1
}

function readTest(scanner: Scanner, readValue: (scanner: Scanner) => string): Test {
  const begin = scanner.at
  const name = scanner.match(word)
  const operator = operators.find((candidate) => candidate === name)
  if (operator === undefined) {
    scanner.at = begin
    return scanner.fail(`an operator (${operators.join(', ')}) is expected, followed by a dot and a value,`)
  }
  let [quantifier, language]: ['any' | 'all' | undefined, string | undefined] = [undefined, undefined]
  if (scanner.sees('(')) {
    const inside = /\(([^()]*)\)/y
    const found = scanner.match(inside)?.slice(1, -1) ?? scanner.fail('a parenthesis is not closed')
    if ((searching as readonly string[]).includes(operator)) language = found
    else if ((found === 'any' || found === 'all') && quantifiable.includes(operator)) quantifier = found
    else scanner.fail(`${operator} does not allow "(${found})"`)
  }
  scanner.expect('.')
  if (operator === 'in') return { operator, values: readList(scanner) }
  if (operator === 'is') {
    const value = readValue(scanner).toLowerCase()
    const known = isWords.find((candidate) => candidate === value)
    return { operator, word: known ?? scanner.fail(`"is" must be followed by one of ${isWords.join(', ')}`) }
  }
  return { operator, value: readValue(scanner), quantifier, language }
}

/** Reads `(a,"b,c",d)`. An element is only quoted if a comma or the end follows its closing quote. */
function readList(scanner: Scanner): string[] {
  scanner.skipBlanks()
  scanner.expect('(')
  scanner.skipBlanks()
  const values: string[] = []
  if (!scanner.sees(')')) {
    do values.push(readElement(scanner))
    while (scanner.skip(','))
  }
  if (!scanner.skip(')')) scanner.expect(',')
  scanner.skipBlanks()
  return values
}

function readElement(scanner: Scanner): string {
  const { text, at: begin } = scanner
  if (scanner.sees('"')) {
    for (let at = begin + 1; at < text.length; at++) {
      if (text.charAt(at) === '\\') at++
      else if (text.charAt(at) === '"' && (text.charAt(at + 1) === ',' || text.charAt(at + 1) === ')')) {
        scanner.at = at + 1
        return text.slice(begin + 1, at).replaceAll(/\\(.)/gs, '$1')
      }
    }
  }
  while (!scanner.isAtEnd && !scanner.sees(',') && !scanner.sees(')')) scanner.at++
  return text.slice(begin, scanner.at)
}
