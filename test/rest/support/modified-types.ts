// Types with a modifier, as columns and arguments: alone, in arrays, domains and composite types, with values that fit,
// that Postgres adapts, and that it rejects.

interface BaseType {
  type: string
  literals: string[]
  /** Values that Postgres reads differently in the text of an array, where it applies the modifier too late. */
  onlyAlone?: string[]
  isTextual?: true
}

const baseTypes: BaseType[] = [
  { type: 'char(5)', literals: ['abcde', 'abcdef', 'ab', 'ab  ', 'abcde  ', 'äö€𝄞x', ''], isTextual: true },
  { type: 'varchar(5)', literals: ['abcde', 'abcdef', 'ab  ', 'abcde  ', ''], isTextual: true },
  { type: 'bpchar', literals: ['abcdef', 'ab  '], isTextual: true },
  { type: 'bit(3)', literals: ['101', '10', '1011', 'x5'] },
  { type: '"bit"', literals: ['10110', '1'] },
  { type: 'varbit(5)', literals: ['101', '110101', ''] },
  { type: 'numeric(5,2)', literals: ['1.005', '123.456', '999.995', '-1e2', 'NaN'] },
  { type: 'numeric(3,-2)', literals: ['12345', '99950', '49'] },
  { type: 'interval minute to second', literals: ['1 day 02:03:04.5', '00:01:30'], onlyAlone: ['1:30'] },
  { type: 'interval year to month', literals: ['1 year 2 mons 3 days', '14 mons'], onlyAlone: ['7'] },
  { type: 'interval day to second(2)', literals: ['1 day 00:00:01.2345', '2 mons'] },
  { type: 'interval(0)', literals: ['00:00:01.5', '1 mon 2 days 03:04:05.6'] },
  { type: 'time(0)', literals: ['12:34:56.7', '23:59:59.9', '25:00'] },
  { type: 'timetz(1)', literals: ['12:34:56.78+02', '01:02:03+00'] },
  { type: 'timestamp(3)', literals: ['2026-01-02 03:04:05.67891', '2026-12-31 23:59:59.99999'] },
  { type: 'timestamptz(0)', literals: ['2026-01-02 03:04:05.6+02', 'never'] },
]

/** A type of a column, with its values as texts of Postgres and as JSON. */
export interface ModifiedType {
  /** The common part of the names of its table and its function. */
  name: string
  /** The SQL that creates the type. */
  sql: string
  type: string
  isArray: boolean
  isTextual: boolean
  /** True if the type can be a key, and so occur in a path. */
  isScalar: boolean
  /** True if Postgres cannot compare a row of the type with a text. */
  isComposite: boolean
  values: Value[]
}

/** A value as a text of Postgres and as JSON. */
export interface Value {
  text: string
  json: unknown
}

const literal = (text: string) => `'${text.replaceAll("'", "''")}'`
const part = (text: string) => `"${text.replaceAll(/["\\]/g, '\\$&')}"`

export const modifiedTypes: ModifiedType[] = baseTypes.flatMap(
  ({ type, literals, onlyAlone = [], isTextual = false }, n) => {
    // One value that fits, and one that is adapted or rejected.
    const few = literals.slice(0, 2)
    const alone = [...literals, ...onlyAlone].map((text) => ({ text, json: text }))
    const some = few.map((text) => ({ text, json: text }))
    const lists = few.map((text) => ({ text: `{${part(text)},NULL}`, json: [text, null] }))
    const make = (kind: string, sql: string, type: string, values: Value[]): ModifiedType => ({
      name: `${kind}_${n}`,
      sql,
      type,
      values,
      isArray: values === lists,
      isTextual: isTextual && (values === alone || values === some),
      isScalar: values === alone || values === some,
      isComposite: kind === 'composite',
    })
    return [
      make('plain', '', type, alone),
      make('array', '', `${type}[]`, lists),
      make('domain', `create domain d_${n} as ${type}; create domain dd_${n} as d_${n};`, `dd_${n}`, some),
      make('domains', '', `d_${n}[]`, lists),
      make('arrays', `create domain a_${n} as ${type}[];`, `a_${n}`, lists),
      make(
        'composite',
        `create type c_${n} as (v ${type});`,
        `c_${n}`,
        few.map((text) => ({ text: `(${part(text)})`, json: { v: text } })),
      ),
    ]
  },
)

export function firstOf({ name, values: [first] }: ModifiedType): Value {
  if (first === undefined) throw new Error(`the type ${name} has no value`)
  return first
}

/** Returns the value as an SQL literal without a type, which Postgres interprets. */
export function asLiteral({ text }: Value): string {
  return literal(text)
}
