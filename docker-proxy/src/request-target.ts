// Parses a request's target into version, segments and query, so strictly that the Engine cannot parse it differently. Pure.
import { Rejected } from './rejected.ts'

export interface Target {
  /** API version `v1.NN`; undefined if the path has none. */
  version: string | undefined
  segments: readonly string[]
  query: Readonly<Record<string, string>>
}

/** API versions of the control plane's client. Older ones interpret some bodies differently. */
const oldestMinor = 41
const newestMinor = 51

/** Pattern of a forwarded segment: a name, an ID or an image's reference. */
const segmentText = /^[A-Za-z0-9_][A-Za-z0-9_.:@/-]*$/
const maxTargetLength = 8_192

/** Parses a target. @throws Rejected */
export function readTarget(target: string): Target {
  if (target.length > maxTargetLength) throw new Rejected('the path is too long')
  const [path = '', text = '', ...more] = target.split('?')
  if (more.length > 0 || !path.startsWith('/')) throw new Rejected('the path is not valid')
  const segments = path.slice(1).split('/').map(decoded)
  const first = segments[0] ?? ''
  const minor = /^v1\.([1-9]\d)$/.exec(first)?.[1]
  if (minor === undefined) return { version: undefined, segments, query: readQuery(text) }
  if (Number(minor) < oldestMinor || Number(minor) > newestMinor)
    throw new Rejected(`the API version ${first.slice(1)} is not supported`)
  return { version: first, segments: segments.slice(1), query: readQuery(text) }
}

function decoded(segment: string): string {
  let text: string
  try {
    text = decodeURIComponent(segment)
  } catch (cause) {
    throw new Rejected('the path is not valid', { cause })
  }
  if (!segmentText.test(text) || text.split('/').some((part) => part === '' || part === '.' || part === '..'))
    throw new Rejected('the path is not valid')
  return text
}

/** Parses a query, in which each name occurs once. */
function readQuery(text: string): Record<string, string> {
  const query: Record<string, string> = {}
  for (const [name, value] of new URLSearchParams(text)) {
    if (Object.hasOwn(query, name) || name === '__proto__') throw new Rejected('the query is not valid')
    query[name] = value
  }
  return query
}
