// Query parameters of what is told about functions: each once, known, and in its form.
import { RuntimeError } from '../../errors.ts'

export type Parameters = ReadonlyMap<string, string>

/** @throws RuntimeError UNKNOWN_PARAMETER, BAD_REQUEST */
export function readParameters(query: unknown, known: readonly string[]): Parameters {
  const given = new Map<string, string>()
  for (const [name, value] of Object.entries(query as Record<string, unknown>)) {
    if (!known.includes(name))
      throw new RuntimeError(
        'UNKNOWN_PARAMETER',
        `there is no parameter "${name.slice(0, 100)}"; there are ${known.join(', ')}`,
      )
    if (typeof value !== 'string') throw wrong(name, 'can be given once')
    if (value.includes('\0')) throw wrong(name, 'holds a NUL')
    given.set(name, value)
  }
  return given
}

/** From 1 to `most`. */
export function readLimit(parameters: Parameters, max: number, usual: number): number {
  const text = parameters.get('limit')
  if (text === undefined) return usual
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > max) throw wrong('limit', `must be an integer from 1 to ${max}`)
  return limit
}

/** In milliseconds since 1970. */
export function readTime(parameters: Parameters, name: 'since' | 'until'): number | undefined {
  const text = parameters.get(name)
  if (text === undefined) return undefined
  const time = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?$/.test(text)
    ? Date.parse(text)
    : Number.NaN
  // Days that a month does not have are moved on rather than refused.
  if (
    Number.isNaN(time) ||
    new Date(`${text.slice(0, 10)}T00:00:00Z`).toISOString().slice(0, 10) !== text.slice(0, 10)
  ) {
    throw wrong(name, 'must be a time such as 2026-05-01T12:00:00Z or a day such as 2026-05-01; a + is written as %2B')
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
  if (choice === undefined) throw wrong(name, `must be one of ${choices.join(', ')}`)
  return choice
}

/** Several of them, separated by commas. */
export function readChoices<T extends string>(
  parameters: Parameters,
  name: string,
  choices: readonly T[],
): T[] | undefined {
  const text = parameters.get(name)
  if (text === undefined) return undefined
  return text.split(',').map((part) => {
    const choice = choices.find((choice) => choice === part)
    if (choice === undefined) throw wrong(name, `takes ${choices.join(', ')}, separated by commas`)
    return choice
  })
}

/** What `writeCursor` made: the place behind which the next page begins. */
export function readCursor(parameters: Parameters, form: RegExp): string | undefined {
  const text = parameters.get('cursor')
  if (text === undefined) return undefined
  const location = Buffer.from(text, 'base64url').toString('utf8')
  if (!form.test(location) || writeCursor(location) !== text)
    throw wrong('cursor', 'must be the "next_cursor" of a page before')
  return location
}

export function writeCursor(location: string): string {
  return Buffer.from(location).toString('base64url')
}

export function wrong(name: string, why: string): RuntimeError {
  return new RuntimeError('BAD_REQUEST', `the parameter "${name}" ${why}`)
}
