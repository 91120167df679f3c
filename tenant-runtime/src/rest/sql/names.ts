// Identifiers and literals in generated SQL. Values are always parameters.

/** Quoted names, which are cached because most statements have the same few. */
const quoted = new Map<string, string>()
const maxQuoted = 10_000

/** Quotes an identifier. Names have passed a check of their form; quoting is the second protection. */
export function identifier(name: string): string {
  const known = quoted.get(name)
  if (known !== undefined) return known
  if (name === '' || Buffer.byteLength(name) > 63 || name.includes('\0'))
    throw new RangeError(`The name ${JSON.stringify(name.slice(0, 100))} is not an identifier.`)
  // Callers may use any aliases, so the cache is bounded.
  if (quoted.size >= maxQuoted) quoted.clear()
  const text = `"${name.replaceAll('"', '""')}"`
  quoted.set(name, text)
  return text
}

export function literal(text: string): string {
  if (text.includes('\0') || text.includes('\\')) throw new RangeError('The text is not a plain literal.')
  return `'${text.replaceAll("'", "''")}'`
}
