// Reads `Range: 0-24`: a range of row numbers in a reading request. Pure.
import type { RuntimeError } from '../../errors.ts'
import { restError } from '../rest-error.ts'

interface RowRange {
  offset: number
  /** Undefined means all following rows. */
  limit: number | undefined
}

/**
 * Reads the header. Returns undefined without one, or when its unit is not rows, because ranges of bytes are not supported.
 */
export function readRange(range: string | undefined, unit: string | undefined): RowRange | 'empty' | undefined {
  if (range === undefined || (unit !== undefined && unit.toLowerCase() !== 'items')) return undefined
  const match = /^(?:items=)?(\d{1,15})-(\d{0,15})$/.exec(range.trim())
  if (match === null) return undefined
  const [offset, last] = [Number(match[1]), match[2] === '' ? undefined : Number(match[2])]
  if (last === undefined) return { offset, limit: undefined }
  return last < offset ? 'empty' : { offset, limit: last - offset + 1 }
}

/** Makes the error of a range without rows. */
export function notSatisfiable(details: string): RuntimeError {
  return restError('RANGE_NOT_SATISFIABLE', { code: 'PGRST103', message: 'Requested range not satisfiable', details })
}
