// Conditional requests and ranges (RFC 9110). Pure.

interface Validators {
  /** The ETag without quotes. */
  etag: string
  modified: Date
}

type Precondition = 'proceed' | 'not modified' | 'failed'

type Headers = Record<string, string | string[] | undefined>

/** Evaluates the preconditions of a request (RFC 9110, section 13.2.2). */
export function precondition(headers: Headers, { etag, modified }: Validators): Precondition {
  const match = text(headers['if-match'])
  if (match !== undefined) {
    if (!matchesEtag(match, etag, 'strong')) return 'failed'
  } else {
    const unmodified = date(headers['if-unmodified-since'])
    if (unmodified !== undefined && seconds(modified) > unmodified) return 'failed'
  }
  const noneMatch = text(headers['if-none-match'])
  if (noneMatch !== undefined) return matchesEtag(noneMatch, etag, 'weak') ? 'not modified' : 'proceed'
  const since = date(headers['if-modified-since'])
  return since !== undefined && seconds(modified) <= since ? 'not modified' : 'proceed'
}

/** A range of bytes; `end` is included. */
export interface Part {
  start: number
  end: number
}

export type RequestedRange =
  { kind: 'whole' } | { kind: 'parts'; parts: readonly [Part, ...Part[]] } | { kind: 'unsatisfiable' }

const maxParts = 32

/**
 * Reads the requested ranges in their order. A header of another form is ignored, and so is one with too many or
 * overlapping ranges (RFC 9110, section 14.2).
 */
export function readRange(headers: Headers, size: number, { etag }: Validators): RequestedRange {
  const header = text(headers['range'])
  if (header === undefined) return { kind: 'whole' }
  const condition = text(headers['if-range'])
  if (condition !== undefined) {
    // Like a weak ETag, a date does not distinguish two versions of the same second (RFC 9110, section 8.8.2.2), and a
    // client could combine parts of both.
    if (condition !== `"${etag}"`) return { kind: 'whole' }
  }
  const list = /^bytes=(.*)$/.exec(header)?.[1]?.split(',') ?? []
  if (list.length > maxParts) return { kind: 'whole' }
  const ranges = list.map((spec) => readPart(spec, size))
  if (ranges.length === 0 || ranges.includes('malformed')) return { kind: 'whole' }
  const [first, ...others] = ranges.filter((part): part is Part => typeof part === 'object')
  if (first === undefined) return { kind: 'unsatisfiable' }
  return overlap([first, ...others]) ? { kind: 'whole' } : { kind: 'parts', parts: [first, ...others] }
}

function readPart(spec: string, size: number): Part | 'outside' | 'malformed' {
  const match = /^\s*(\d{0,15})-(\d{0,15})\s*$/.exec(spec)
  if (match === null || (match[1] === '' && match[2] === '')) return 'malformed'
  if (match[1] === '') {
    const last = Number(match[2])
    return last === 0 || size === 0 ? 'outside' : { start: Math.max(0, size - last), end: size - 1 }
  }
  const start = Number(match[1])
  const end = match[2] === '' ? size - 1 : Math.min(Number(match[2]), size - 1)
  if (match[2] !== '' && Number(match[2]) < start) return 'malformed'
  return start >= size ? 'outside' : { start, end }
}

function overlap(parts: readonly Part[]): boolean {
  const sorted = [...parts].sort((a, b) => a.start - b.start)
  return sorted.some(({ start }, index) => start <= (sorted[index - 1]?.end ?? -1))
}

function text(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header.join(', ') : header
}

function matchesEtag(list: string, etag: string, comparison: 'strong' | 'weak'): boolean {
  if (list.trim() === '*') return true
  return list.split(',').some((entry) => {
    const tag = entry.trim()
    return tag === `"${etag}"` || (comparison === 'weak' && tag === `W/"${etag}"`)
  })
}

/** Returns whole seconds, which is the precision of HTTP dates. */
function seconds(at: Date): number {
  return Math.floor(at.getTime() / 1000)
}

/** The three forms of RFC 9110, section 5.6.7. */
const httpDate = new RegExp(
  [
    /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/,
    /^[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/,
    /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/,
  ]
    .map(({ source }) => source)
    .join('|'),
)

function date(header: string | string[] | undefined): number | undefined {
  const given = text(header) ?? ''
  if (!httpDate.test(given)) return undefined
  const parsed = Date.parse(given.endsWith('GMT') ? given : `${given} GMT`)
  return Number.isNaN(parsed) ? undefined : Math.floor(parsed / 1000)
}
