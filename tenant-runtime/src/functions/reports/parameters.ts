// Query parameters of reports about functions. Each must be known, given once and well-formed.
import { RuntimeError } from '../../errors.ts'

export type Parameters = ReadonlyMap<string, string>

/** Reads the parameters of a query. @throws RuntimeError UNKNOWN_PARAMETER, BAD_REQUEST */
export function readParameters(query: unknown, known: readonly string[]): Parameters {
  const given = new Map<string, string>()
  for (const [name, value] of Object.entries(query as Record<string, unknown>)) {
    if (!known.includes(name))
      throw new RuntimeError(
        'UNKNOWN_PARAMETER',
        `Unknown parameter "${name.slice(0, 100)}". Allowed: ${known.join(', ')}.`,
      )
    if (typeof value !== 'string') throw invalidParameter(name, 'must be given only once')
    if (value.includes('\0')) throw invalidParameter(name, 'must not contain NUL')
    given.set(name, value)
  }
  return given
}

/** Reads a limit from 1 to `max`. @throws RuntimeError BAD_REQUEST */
export function readLimit(parameters: Parameters, max: number, defaultLimit: number): number {
  const text = parameters.get('limit')
  if (text === undefined) return defaultLimit
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > max) throw invalidParameter('limit', `must be an integer from 1 to ${max}`)
  return limit
}

/** Reads a time in milliseconds since 1970. @throws RuntimeError BAD_REQUEST */
export function readTime(parameters: Parameters, name: 'since' | 'until'): number | undefined {
  const text = parameters.get(name)
  if (text === undefined) return undefined
  const time = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?$/.test(text)
    ? Date.parse(text)
    : Number.NaN
  // The parser accepts days that a month does not have, and moves them into the next month.
  if (
    Number.isNaN(time) ||
    new Date(`${text.slice(0, 10)}T00:00:00Z`).toISOString().slice(0, 10) !== text.slice(0, 10)
  ) {
    throw invalidParameter(
      name,
      'must be a time such as 2026-05-01T12:00:00Z or a day such as 2026-05-01, with + written as %2B',
    )
  }
  return time
}

export function readChoice<T extends string>(
  parameters: Parameters,
  name: string,
  choices: readonly T[],
): T | undefined {
  const text = parameters.get(name)
  if (text === undefined) return undefined
  const choice = choices.find((choice) => choice === text)
  if (choice === undefined) throw invalidParameter(name, `must be one of ${choices.join(', ')}`)
  return choice
}

/** Reads several choices, separated by commas. @throws RuntimeError BAD_REQUEST */
export function readChoices<T extends string>(
  parameters: Parameters,
  name: string,
  choices: readonly T[],
): T[] | undefined {
  const text = parameters.get(name)
  if (text === undefined) return undefined
  return text.split(',').map((part) => {
    const choice = choices.find((choice) => choice === part)
    if (choice === undefined)
      throw invalidParameter(name, `must be a list of ${choices.join(', ')}, separated by commas`)
    return choice
  })
}

/** Decodes a cursor: the position after which the next page begins. @throws RuntimeError BAD_REQUEST */
export function readCursor(parameters: Parameters, form: RegExp): string | undefined {
  const text = parameters.get('cursor')
  if (text === undefined) return undefined
  const position = Buffer.from(text, 'base64url').toString('utf8')
  if (!form.test(position) || writeCursor(position) !== text)
    throw invalidParameter('cursor', 'must be the "next_cursor" of a previous page')
  return position
}

/** Encodes a position as a cursor. */
export function writeCursor(position: string): string {
  return Buffer.from(position).toString('base64url')
}

export function invalidParameter(name: string, error: string): RuntimeError {
  return new RuntimeError('BAD_REQUEST', `Parameter "${name}" ${error}.`)
}
