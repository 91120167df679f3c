// Reads the body of a reload: the lines of an earlier response that the caller confirms, and changed settings. Pure.
import { RuntimeError } from '../../errors.ts'
import { readSettingsChange, type SettingsChange } from './read-settings.ts'

interface ReloadBody {
  confirmed: string[]
  settings: SettingsChange
}

/**
 * Reads the body.
 * @throws RuntimeError BAD_REQUEST, UNKNOWN_FIELD
 */
export function readReload(body: unknown): ReloadBody {
  if (body === undefined || body === null) return { confirmed: [], settings: {} }
  if (typeof body !== 'object' || Array.isArray(body))
    throw new RuntimeError('BAD_REQUEST', 'The body must be an object, or empty.')
  const { confirm = [], settings, ...others } = Object.fromEntries(Object.entries(body))
  const [first] = Object.keys(others)
  if (first !== undefined)
    throw new RuntimeError('UNKNOWN_FIELD', `Unknown field "${first.slice(0, 100)}". Allowed: confirm, settings.`)
  return { confirmed: readConfirmed(confirm), settings: readSettingsChange(settings) }
}

function readConfirmed(confirm: unknown): string[] {
  if (!Array.isArray(confirm)) throw new RuntimeError('BAD_REQUEST', 'Field "confirm" must be an array of lines.')
  return confirm.map((line: unknown, n) => {
    if (typeof line !== 'string')
      throw new RuntimeError('BAD_REQUEST', `Field "confirm[${n}]" must be a line of "changes" or "droppable".`)
    return line
  })
}
