// Reads `Prefer`: how a client wants a request to be processed. Pure.
import { restError } from '../rest-error.ts'

const known = {
  return: ['minimal', 'representation', 'headers-only'],
  count: ['exact', 'planned', 'estimated'],
  resolution: ['merge-duplicates', 'ignore-duplicates'],
  missing: ['default', 'null'],
  handling: ['strict', 'lenient'],
  tx: ['commit', 'rollback'],
} as const

type Known = typeof known
type Choice<Name extends keyof Known> = Known[Name][number] | undefined

export interface Preferences {
  return: Choice<'return'>
  count: Choice<'count'>
  resolution: Choice<'resolution'>
  missing: Choice<'missing'>
  handling: Choice<'handling'>
  tx: Choice<'tx'>
  /** The maximum number of changed rows; only with `handling=strict`. */
  maxAffected: number | undefined
  /** The name of the time zone in which times are returned. */
  timezone: string | undefined
  /** The accepted preferences, for `Preference-Applied`. */
  applied: string[]
}

/**
 * Reads the header.
 * @param allowsRollback whether `tx` is allowed; otherwise it is ignored
 * @throws RuntimeError INVALID_QUERY (PGRST122) when the client is strict and a preference is unknown
 */
export function readPreferences(header: string | string[] | undefined, allowsRollback: boolean): Preferences {
  const preferences: Preferences = {
    return: undefined,
    count: undefined,
    resolution: undefined,
    missing: undefined,
    handling: undefined,
    tx: undefined,
    maxAffected: undefined,
    timezone: undefined,
    applied: [],
  }
  if (header === undefined) return preferences
  const unknown: string[] = []
  for (const text of String(header)
    .split(',')
    .map((part) => part.trim())) {
    if (text === '') continue
    const [name = '', lower = ''] = text.toLowerCase().split('=', 2)
    const value = name === 'timezone' ? text.slice('timezone='.length) : lower
    if (name === 'max-affected' && /^\d{1,9}$/.test(value)) preferences.maxAffected ??= Number(value)
    else if (!set(preferences, name, value)) {
      unknown.push(text)
      continue
    }
    if (!preferences.applied.some((applied) => applied.startsWith(`${name}=`)))
      preferences.applied.push(`${name}=${value}`)
  }
  if (preferences.handling === 'strict' && unknown.length > 0) {
    throw restError('INVALID_QUERY', {
      code: 'PGRST122',
      message: 'Invalid preferences given with handling=strict',
      details: `Invalid preferences: ${unknown.join(', ')}`,
    })
  }
  const omit = (name: string) => {
    preferences.applied = preferences.applied.filter((applied) => !applied.startsWith(`${name}=`))
  }
  if (preferences.handling !== 'strict') {
    preferences.maxAffected = undefined
    omit('max-affected')
  }
  if (!allowsRollback) {
    preferences.tx = undefined
    omit('tx')
  }
  return preferences
}

/**
 * Sets a preference. The first one of a name counts.
 * @returns false for an unknown one
 */
function set(preferences: Preferences, name: string, value: string): boolean {
  const chosen = <Choice extends string>(choices: readonly Choice[]) => choices.find((choice) => choice === value)
  switch (name) {
    case 'return':
      return (preferences.return ??= chosen(known.return)) !== undefined
    case 'count':
      return (preferences.count ??= chosen(known.count)) !== undefined
    case 'resolution':
      return (preferences.resolution ??= chosen(known.resolution)) !== undefined
    case 'missing':
      return (preferences.missing ??= chosen(known.missing)) !== undefined
    case 'handling':
      return (preferences.handling ??= chosen(known.handling)) !== undefined
    case 'tx':
      return (preferences.tx ??= chosen(known.tx)) !== undefined
    case 'timezone':
      return (preferences.timezone ??= isTimezone(value) ? value : undefined) !== undefined
    default:
      return false
  }
}

const timezones = new Map<string, boolean>()
const maxTimezones = 1_000

/** Whether the text is the name of a time zone. */
function isTimezone(name: string): boolean {
  // Offsets such as +02:00 have the opposite sign in Postgres.
  if (!/^[A-Za-z][\w+/-]{0,63}$/.test(name)) return false
  let isKnown = timezones.get(name)
  if (isKnown === undefined) {
    try {
      isKnown = new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
    } catch {
      isKnown = false
    }
    // Callers may send any names, so the cache is bounded.
    if (timezones.size >= maxTimezones) timezones.clear()
    timezones.set(name, isKnown)
  }
  return isKnown
}
