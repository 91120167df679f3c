// Keeps the parts' own calls off the public door: they carry the same token that every forwarded request carries.

/**
 * Whether a runtime might take the path for one of `/internal/…`, however it is written: encoded, with empty or
 * dot segments, with backslashes, in any case. Refuses too much rather than too little; no public path begins so.
 */
export function isInternalPath(path: string): boolean {
  if (plainPath.test(path)) return false
  const end = path.search(/[?#;]/)
  const decoded = decodeTwice(end < 0 ? path : path.slice(0, end))
  const segments: string[] = []
  for (const segment of decoded.split(/[/\\]/)) {
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  return segments[0]?.toLowerCase() === 'internal'
}

/** The public areas with no dot segment and nothing encoded: the common case, decided without taking it apart. */
const plainPath = /^\/(?:storage|rest|functions|admin|events)\/(?!.*\.\.)[^%\\]*$/

function decodeTwice(text: string): string {
  return decode(decode(text))
}

/** Never throws: what is no escape stays as it is. Bytes beyond ASCII don't matter here. */
function decode(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}
