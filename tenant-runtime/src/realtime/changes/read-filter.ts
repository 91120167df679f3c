// Reads the filter of a subscription to changes: `room=eq.7,text=not.like.a%`. Pure.

const operators = [
  'eq',
  'neq',
  'lt',
  'lte',
  'gt',
  'gte',
  'in',
  'like',
  'ilike',
  'is',
  'match',
  'imatch',
  'isdistinct',
] as const
export type Operator = (typeof operators)[number]

const patternOperators = ['like', 'ilike', 'match', 'imatch'] as const
/** The operators whose value is a pattern or a regular expression. */
export type PatternOperator = (typeof patternOperators)[number]

export function isPatternOperator(operator: Operator): operator is PatternOperator {
  return patternOperators.some((known) => known === operator)
}

/** One condition of a filter. All of them must hold. */
export interface Condition {
  column: string
  isNegated: boolean
  operator: Operator
  /** The values as texts: one, or those of the list of `in`. */
  values: readonly string[]
}

/** A filter or a subscription that cannot be served. */
export class SubscriptionError extends Error {}

const maxConditions = 32
const maxListed = 100
const isValues = ['null', 'not_null', 'true', 'false', 'unknown']

/**
 * Reads a filter.
 * @throws SubscriptionError
 */
export function readFilter(text: string): Condition[] {
  if (text === '') return []
  const parts = splitAtCommas(text)
  if (parts.length > maxConditions)
    throw new SubscriptionError(`A filter has at most ${maxConditions} conditions, not ${parts.length}.`)
  return parts.map(readCondition)
}

const conditionForm = /^\s*([^=]+?)=(not\.)?([a-z]+)\.(.*)$/s

function readCondition(text: string): Condition {
  const [, column, not, name, value = ''] = conditionForm.exec(text) ?? []
  if (column === undefined)
    throw new SubscriptionError(`Invalid condition "${shortened(text)}". Allowed: column=operator.value.`)
  const operator = operators.find((known) => known === name)
  if (operator === undefined)
    throw new SubscriptionError(`Unknown operator "${shortened(name ?? '')}". Allowed: ${operators.join(', ')}.`)
  const values = valuesOf(operator, value)
  if ((operator === 'like' || operator === 'ilike') && endsWithEscape.test(values[0] ?? ''))
    throw new SubscriptionError(`Invalid pattern "${shortened(value)}". It must not end with a single backslash.`)
  return { column, isNegated: not !== undefined, operator, values }
}

/** A backslash at the end that does not follow another one. */
const endsWithEscape = /(?<!\\)(?:\\\\)*\\$/

function valuesOf(operator: Operator, text: string): string[] {
  if (operator === 'is') {
    const value = text.toLowerCase()
    if (!isValues.includes(value))
      throw new SubscriptionError(`Invalid value "${shortened(text)}" of "is". Allowed: ${isValues.join(', ')}.`)
    return [value]
  }
  if (operator !== 'in') return [unquoted(text)]
  if (!text.startsWith('(') || !text.endsWith(')'))
    throw new SubscriptionError(`Invalid list "${shortened(text)}" of "in". Allowed: (a,b,c).`)
  const values = splitAtCommas(text.slice(1, -1)).map((value) => unquoted(value.trim()))
  if (values.length > maxListed)
    throw new SubscriptionError(`The list of "in" has at most ${maxListed} values, not ${values.length}.`)
  return values
}

/** Splits a text at commas outside of quotes and parentheses. */
function splitAtCommas(text: string): string[] {
  const parts: string[] = []
  let begin = 0
  let depth = 0
  let isQuoted = false
  for (let at = 0; at < text.length; at++) {
    const char = text[at]
    if (isQuoted) {
      if (char === '\\') at++
      else if (char === '"') isQuoted = false
    } else if (char === '"' && isValueStart(text, at)) isQuoted = true
    else if (char === '(') depth++
    else if (char === ')') depth--
    else if (char === ',' && depth <= 0) {
      parts.push(text.slice(begin, at))
      begin = at + 1
    }
  }
  parts.push(text.slice(begin))
  return parts
}

/** Whether a value begins here: only there, a quote is not a part of the value. Lists may have spaces before values. */
function isValueStart(text: string, at: number): boolean {
  const before = text.slice(0, at).trimEnd()
  return before === '' || '(,'.includes(before.at(-1) ?? '') || text[at - 1] === '.'
}

function unquoted(text: string): string {
  if (text.length < 2 || !text.startsWith('"') || !text.endsWith('"')) return text
  return text.slice(1, -1).replaceAll(/\\(.)/gs, '$1')
}

function shortened(text: string): string {
  return text.slice(0, 100)
}
