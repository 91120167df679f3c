// Columns of a result: from Postgres' text to the values that the rest of the runtime sees.
import pg from 'pg'

const int8 = 20
const timestamptz = 1184

/** What makes a value of a text, for a type's id. */
export function parserOf(type: number): (text: string) => unknown {
  // Counts and sizes: all of ours lie far below 2^53.
  if (type === int8) return Number
  if (type === timestamptz) return isoTime
  // Its declared types know only the built-in ids, and call what a parser makes `any`.
  return (pg.types.getTypeParser as (id: number) => (text: string) => unknown)(type)
}

/**
 * Postgres' text of a time in ISO 8601 with milliseconds; null for what has no such form. Sessions run in UTC with ISO dates,
 * so that mostly only the blank, the milliseconds and the short offset differ: a listing has hundreds of them.
 */
export function isoTime(text: string): string | null {
  if (text.length <= 26 && text[4] === '-' && text.endsWith('+00'))
    return `${text.slice(0, 10)}T${text.slice(11, 19)}.${text.slice(20, -3).padEnd(3, '0')}Z`
  const time = new Date(text.replace(' ', 'T').replace(/\+00$/, 'Z'))
  return Number.isNaN(time.getTime()) ? null : time.toISOString()
}
