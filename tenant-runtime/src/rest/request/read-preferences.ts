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
    applied: [],
  }
  if (header === undefined) return preferences
  const unknown: string[] = []
  for (const text of String(header)
    .split(',')
    .map((part) => part.trim())) {
    if (text === '') continue
    const [name = '', value = ''] = text.toLowerCase().split('=', 2)
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
    default:
      return false
  }
}
