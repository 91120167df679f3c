// Reads a subscriber's parameters.
import { RuntimeError } from '../errors.ts'
import type { EventFilter } from './event-reader.ts'

const maxListLength = 100
const maxSeq = 2n ** 63n - 1n

/**
 * Reads `?type=a,b&bucket=c&collection=d`: names, comma-separated or repeated.
 * @throws RuntimeError UNKNOWN_PARAMETER, BAD_REQUEST
 */
export function readFilter(query: unknown): EventFilter {
  const parameters = query as Record<string, string | string[]>
  const unknown = Object.keys(parameters).find((name) => !Object.hasOwn(examples, name))
  if (unknown !== undefined)
    throw new RuntimeError(
      'UNKNOWN_PARAMETER',
      `Unknown parameter "${unknown.slice(0, 100)}". Allowed: ${Object.keys(examples).join(', ')}.`,
    )
  return {
    types: readNames('type', parameters['type']),
    buckets: readNames('bucket', parameters['bucket']),
    collections: readNames('collection', parameters['collection']),
  }
}

const examples = { type: 'storage.object.created', bucket: 'avatars', collection: 'notes' } as const

function readNames(parameter: keyof typeof examples, given: string | string[] | undefined): string[] | undefined {
  if (given === undefined) return undefined
  const names = [given].flat().flatMap((text) => text.split(','))
  if (names.length > maxListLength)
    throw new RuntimeError('BAD_REQUEST', `Parameter "${parameter}" allows at most ${maxListLength} names.`)
  if (names.some((name) => !/^[a-z0-9][a-z0-9._-]{0,127}$/.test(name)))
    throw new RuntimeError(
      'BAD_REQUEST',
      `Parameter "${parameter}" must be names such as ${examples[parameter]}, separated by commas.`,
    )
  return names
}

/**
 * Reads the header Last-Event-ID.
 * @throws RuntimeError INVALID_EVENT_ID
 */
export function readLastEventId(header: string | string[] | undefined): bigint | undefined {
  if (header === undefined || header === '') return undefined
  const seq = typeof header === 'string' && /^\d{1,19}$/.test(header) ? BigInt(header) : undefined
  if (seq === undefined || seq > maxSeq)
    throw new RuntimeError('INVALID_EVENT_ID', 'Last-Event-ID must be the ID of an event.')
  return seq
}
