// Converts a function's output to an HTTP response: the bytes as they are, or with a status and headers if the output begins
// with "Status: NNN". Pure.

export interface FunctionResponse {
  status: number
  headers: Record<string, string>
  body: Buffer
}

/** Headers that a function may set, in addition to `x-…`. The host sets the others. */
const allowedHeaders = new Set([
  'content-type',
  'content-disposition',
  'content-language',
  'cache-control',
  'etag',
  'expires',
  'last-modified',
  'link',
  'location',
  'retry-after',
  'vary',
  'www-authenticate',
])
const maxHeadLength = 16 * 1024

/** Reads a function's output. @throws SyntaxError with what is wrong in the head that the function wrote */
export function readResponse(output: Buffer): FunctionResponse {
  const head = headOf(output)
  if (head === undefined) return { status: 200, headers: { 'content-type': typeOf(output) }, body: output }
  const [first = '', ...lines] = head.text.split(/\r?\n/)
  const status = Number(/^status: *(\d{3})\b/i.exec(first)?.[1])
  if (status < 200 || status > 599) throw new SyntaxError(`The function set the status ${status}. Allowed: 200 to 599.`)
  const body = output.subarray(head.length)
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const match = /^([A-Za-z0-9-]+):[ \t]*([\t\x20-\x7e]*)$/.exec(line)
    const name = match?.[1]?.toLowerCase()
    if (name === undefined || match?.[2] === undefined)
      throw new SyntaxError('The function wrote an invalid header line.')
    if (!allowedHeaders.has(name) && (!name.startsWith('x-') || name.startsWith('x-tenantry')))
      throw new SyntaxError(`The function set the header "${match[1] ?? ''}", which is not allowed.`)
    headers[name] = match[2].trim()
  }
  headers['content-type'] ??= typeOf(body)
  return { status, headers, body }
}

function headOf(output: Buffer): { text: string; length: number } | undefined {
  const start = output.toString('latin1', 0, maxHeadLength)
  if (!/^status: *\d{3}\b/i.test(start)) return undefined
  const end = /\r?\n\r?\n/.exec(start)
  if (end === null) {
    if (output.length >= maxHeadLength)
      throw new SyntaxError(`The head of the function's response does not end within ${maxHeadLength} bytes.`)
    return { text: start.trimEnd(), length: output.length }
  }
  return { text: start.slice(0, end.index), length: end.index + end[0].length }
}

function typeOf(body: Buffer): string {
  if (!looksLikeJson(body)) return 'text/plain; charset=utf-8'
  try {
    JSON.parse(body.toString('utf8'))
    return 'application/json; charset=utf-8'
  } catch {
    return 'text/plain; charset=utf-8'
  }
}

/** Whether a body can be JSON; it saves the parsing of large texts. */
function looksLikeJson(body: Buffer): boolean {
  const first = body.find((byte) => byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d)
  return first !== undefined && /[[{"\-\dtfn]/.test(String.fromCharCode(first))
}
