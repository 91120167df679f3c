// Checks records against filters. Pure. Patterns and regular expressions are left to Postgres, because a client chooses them and
// they could occupy this process.
import { compareValues, textOf, type RecordValue } from './compare-values.ts'
import { isPatternOperator, type Condition, type PatternOperator } from './read-filter.ts'

/** A condition whose values have the type of its column. */
export interface TypedCondition extends Omit<Condition, 'values'> {
  /** The values as JSON shows values of the column; patterns and the values of `is` are texts. */
  values: readonly RecordValue[]
}

export interface Filter {
  /** The conditions that this process checks. */
  conditions: readonly TypedCondition[]
  /** The conditions with patterns and regular expressions. */
  patterns: readonly TypedCondition[]
}

/** A filter that every record meets. */
export const noFilter: Filter = { conditions: [], patterns: [] }

/** A pattern that Postgres must match with a text. */
export interface PatternMatch {
  text: string
  operator: PatternOperator
  pattern: string
  isNegated: boolean
}

/** The longest text that patterns are matched with. A longer one matches none. */
const maxTextLength = 65_536

/** Whether a record meets the conditions that this process checks. */
export function meetsConditions(record: Readonly<Record<string, RecordValue>>, { conditions }: Filter): boolean {
  return conditions.every((condition) => isMet(record[condition.column] ?? null, condition))
}

/** Returns the matches on which a record still depends; undefined when it cannot match, because a text is null or too long. */
export function openMatches(
  record: Readonly<Record<string, RecordValue>>,
  { patterns }: Filter,
): PatternMatch[] | undefined {
  const matches: PatternMatch[] = []
  for (const { column, operator, isNegated, values } of patterns) {
    const text = textOf(record[column] ?? null)
    if (text === undefined || text.length > maxTextLength || !isPatternOperator(operator)) return undefined
    matches.push({ text, operator, pattern: String(values[0]), isNegated })
  }
  return matches
}

function isMet(value: RecordValue, { operator, isNegated, values }: TypedCondition): boolean {
  const [wanted = null] = values
  if (operator === 'is') return isTruth(value, String(wanted)) !== isNegated
  if (operator === 'isdistinct') return (value === null || compareValues(value, wanted) !== 0) !== isNegated
  // A comparison with null is unknown, and so is its negation.
  if (value === null) return false
  return isTrue(value, operator, values) !== isNegated
}

function isTrue(value: RecordValue, operator: Condition['operator'], values: readonly RecordValue[]): boolean {
  const [wanted] = values
  switch (operator) {
    case 'eq':
      return compareValues(value, wanted) === 0
    case 'neq':
      return compareValues(value, wanted) !== 0
    case 'lt':
      return compareValues(value, wanted) < 0
    case 'lte':
      return compareValues(value, wanted) <= 0
    case 'gt':
      return compareValues(value, wanted) > 0
    case 'gte':
      return compareValues(value, wanted) >= 0
    case 'in':
      return values.some((listed) => compareValues(value, listed) === 0)
    default:
      throw new Error(`The operator ${operator} is checked elsewhere.`)
  }
}

function isTruth(value: RecordValue, wanted: string): boolean {
  switch (wanted) {
    case 'true':
      return value === true
    case 'false':
      return value === false
    case 'not_null':
      return value !== null
    default:
      return value === null
  }
}
