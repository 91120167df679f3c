// Recognises the paths of the parts' own calls, which the public server rejects because every forwarded request has the
// same token.

/**
 * Whether a runtime might read the path as one of `/internal/…`, however it is written: encoded, with empty or dot
 * segments, with backslashes, in any case. Matches too much rather than too little; no public path begins like this.
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

/** Matches paths of the public modules without dot segments and encoding: the common case, decided without parsing. */
const plainPath = /^\/(?:storage|rest|functions|admin|events)\/(?!.*\.\.)[^%\\]*$/

function decodeTwice(text: string): string {
  return decode(decode(text))
}

/** Decodes percent escapes. Never throws: an invalid escape stays unchanged. Bytes beyond ASCII don't matter here. */
function decode(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}
