// The body of a reload: the lines of an earlier answer that are confirmed. Pure.
import { RuntimeError } from '../../errors.ts'

/** @throws RuntimeError BAD_REQUEST, UNKNOWN_FIELD */
export function readConfirmed(body: unknown): string[] {
  if (body === undefined || body === null) return []
  if (typeof body !== 'object' || Array.isArray(body))
    throw new RuntimeError('BAD_REQUEST', 'the body must be an object, or empty')
  const { confirm = [], ...others } = Object.fromEntries(Object.entries(body))
  const [first] = Object.keys(others)
  if (first !== undefined) throw new RuntimeError('UNKNOWN_FIELD', `"${first}" is not known; there is confirm`)
  if (!Array.isArray(confirm)) throw new RuntimeError('BAD_REQUEST', 'confirm must be an array of lines')
  return confirm.map((line: unknown, n) => {
    if (typeof line !== 'string')
      throw new RuntimeError('BAD_REQUEST', `confirm[${n}] must be a line of changes or droppable`)
    return line
  })
}
