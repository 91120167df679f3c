// Parsers of a result's columns: from Postgres' text to the values that the rest of the runtime uses.
import pg from 'pg'

const int8 = 20
const timestamptz = 1184

/**
 * Returns the parser of a type's texts.
 * @param type the type's OID
 */
export function parserOf(type: number): (text: string) => unknown {
  // All of our counts and sizes are far below 2^53.
  if (type === int8) return Number
  if (type === timestamptz) return isoTime
  // The declared types only know the built-in OIDs, and return `any` for a parser's result.
  return (pg.types.getTypeParser as (id: number) => (text: string) => unknown)(type)
}

/**
 * Converts Postgres' text of a time to ISO 8601 with milliseconds; null when it has no such form. Sessions run in UTC with
 * ISO dates, so that mostly only the blank, the milliseconds and the short offset differ. This fast path matters for
 * listings.
 */
export function isoTime(text: string): string | null {
  if (text.length <= 26 && text[4] === '-' && text.endsWith('+00'))
    return `${text.slice(0, 10)}T${text.slice(11, 19)}.${text.slice(20, -3).padEnd(3, '0')}Z`
  const time = new Date(text.replace(' ', 'T').replace(/\+00$/, 'Z'))
  return Number.isNaN(time.getTime()) ? null : time.toISOString()
}
