// Checks that a token has its only canonical form (RFC 7515): base64url without padding and stray bits, and JSON objects
// without duplicate members. Different parsers could read any other form differently.

/** Returns what is wrong with a token's form; undefined for a valid one. The signature is not checked. */
export function malformed(token: string): string | undefined {
  const parts = token.split('.')
  if (parts.length !== 3 || !parts.every(isCanonical)) return 'The token is not three parts of base64url.'
  const objects = parts.slice(0, 2).map((part) => Buffer.from(part, 'base64url').toString('utf8'))
  // Some parsers skip a byte order mark, and others find no JSON after it.
  if (!objects.every((json) => /^[ \t\r\n]*\{/.test(json))) return 'The token has a part that is not a JSON object.'
  if (objects.some(hasDuplicates)) return 'The token has a duplicate member.'
  return undefined
}

/**
 * Returns a signed payload as JSON text that Postgres accepts: without NUL and unpaired surrogates, which its texts cannot
 * have.
 */
export function claimsText(payload: unknown): string {
  // An escaped backslash matches first, so that the text after it is not an escape.
  return JSON.stringify(payload).replace(/\\\\|\\u0000|\\ud[89a-f][0-9a-f]{2}/g, (escape) =>
    escape === '\\\\' ? escape : escape === '\\u0000' ? '' : '\ufffd',
  )
}

function isCanonical(part: string): boolean {
  return part !== '' && Buffer.from(part, 'base64url').toString('base64url') === part
}

const tokens = /"(?:[^"\\]|\\.)*"(\s*:)?|[{}[\]]/gs

/** Whether a member of the outermost object is duplicated, however it is escaped. */
function hasDuplicates(json: string): boolean {
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

/**
 * Returns the unescaped name, or the text unchanged when it is not valid JSON. Then the whole token is rejected as invalid.
 */
function unescaped(quoted: string): string {
  try {
    return String(JSON.parse(quoted))
  } catch {
    return quoted
  }
}
