// A request's target → version, segments and query, read so strictly that the Engine can't read it otherwise. Pure.
import { Rejected } from './rejected.ts'

export interface Target {
  /** `v1.NN`; undefined without one. */
  version: string | undefined
  segments: readonly string[]
  query: Readonly<Record<string, string>>
}

/** Versions that our own client speaks; older ones read some bodies in another way. */
const oldestMinor = 41
const newestMinor = 51

/** One segment as it is passed on: names and ids, and of images their reference. */
const segmentText = /^[A-Za-z0-9_][A-Za-z0-9_.:@/-]*$/
const maxTargetLength = 8_192

/** @throws Refused */
export function readTarget(target: string): Target {
  if (target.length > maxTargetLength) throw new Rejected('the path is too long')
  const [path = '', text = '', ...more] = target.split('?')
  if (more.length > 0 || !path.startsWith('/')) throw new Rejected('the path cannot be read')
  const segments = path.slice(1).split('/').map(decoded)
  const first = segments[0] ?? ''
  const minor = /^v1\.([1-9]\d)$/.exec(first)?.[1]
  if (minor === undefined) return { version: undefined, segments, query: readQuery(text) }
  if (Number(minor) < oldestMinor || Number(minor) > newestMinor)
    throw new Rejected(`the API version ${first.slice(1)} is not spoken here`)
  return { version: first, segments: segments.slice(1), query: readQuery(text) }
}

function decoded(segment: string): string {
  let text: string
  try {
    text = decodeURIComponent(segment)
  } catch (cause) {
    throw new Rejected('the path cannot be read', { cause })
  }
  if (!segmentText.test(text) || text.split('/').some((part) => part === '' || part === '.' || part === '..'))
    throw new Rejected('the path cannot be read')
  return text
}

/** Each name once. */
function readQuery(text: string): Record<string, string> {
  const query: Record<string, string> = {}
  for (const [name, value] of new URLSearchParams(text)) {
    if (Object.hasOwn(query, name) || name === '__proto__') throw new Rejected('the query cannot be read')
    query[name] = value
  }
  return query
}
