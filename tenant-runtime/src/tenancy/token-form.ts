// Whether a token is written in the one way there is (RFC 7515): base64url without padding and stray bits, and JSON objects
// that name each member once. Two readers of anything else may not read the same.

/** Undefined for a good one, else what is wrong. The signature is another matter. */
export function malformed(token: string): string | undefined {
  const parts = token.split('.')
  if (parts.length !== 3 || !parts.every(isCanonical)) return 'the token is not three parts of base64url'
  const objects = parts.slice(0, 2).map((part) => Buffer.from(part, 'base64url').toString('utf8'))
  // Some readers pass over a mark of byte order, others find no JSON behind it.
  if (!objects.every((json) => /^[ \t\r\n]*\{/.test(json))) return 'the token holds something that is no object'
  if (objects.some(hasTwins)) return 'the token names a member twice'
  return undefined
}

/** A signed payload as JSON text that Postgres takes: without NUL and halves of characters, which its texts can't hold. */
export function claimsText(payload: unknown): string {
  // A backslash that stands for itself comes first, so that what follows it is no escape.
  return JSON.stringify(payload).replace(/\\\\|\\u0000|\\ud[89a-f][0-9a-f]{2}/g, (escape) =>
    escape === '\\\\' ? escape : escape === '\\u0000' ? '' : '\ufffd',
  )
}

function isCanonical(part: string): boolean {
  return part !== '' && Buffer.from(part, 'base64url').toString('base64url') === part
}

const tokens = /"(?:[^"\\]|\\.)*"(\s*:)?|[{}[\]]/gs

/** True when a member of the outermost object stands there twice, however it is escaped. */
function hasTwins(json: string): boolean {
  const names = new Set<string>()
  let depth = 0
  for (const [token, colon] of json.matchAll(tokens)) {
    if (token === '{' || token === '[') depth++
    else if (token === '}' || token === ']') depth--
    else if (depth === 1 && colon !== undefined) {
      const name = unescaped(token.slice(0, -colon.length))
      if (names.has(name)) return true
      names.add(name)
    }
  }
  return false
}

/** As it stands when it is no JSON: then the whole is none, and refused for that. */
function unescaped(quoted: string): string {
  try {
    return String(JSON.parse(quoted))
  } catch {
    return quoted
  }
}
