// Formats JSON as text, without reading its values: numbers keep every digit, and members keep their order.

const tokens = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g

/** Returns JSON with a line for each member. A text that is not JSON is returned without a loss of its tokens. */
export function indentJson(text: string): string {
  const parts: string[] = []
  let depth = 0
  let previous = ''
  const line = () => `\n${'  '.repeat(depth)}`
  for (const [token] of text.matchAll(tokens)) {
    const isEnd = token === '}' || token === ']'
    if (isEnd) depth = Math.max(0, depth - 1)
    const begins = previous === '{' || previous === '['
    if ((isEnd && !begins) || (begins && !isEnd) || previous === ',') parts.push(line())
    parts.push(token)
    if (token === ':') parts.push(' ')
    if (token === '{' || token === '[') depth++
    previous = token
  }
  return parts.join('')
}
