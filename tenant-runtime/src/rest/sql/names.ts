// Identifiers and literals in generated SQL. Values never come here: they are parameters.

/** Names that were quoted before: the same few are in every statement. */
const quoted = new Map<string, string>()
const maxQuoted = 10_000

/** Quotes an identifier. Only names that passed a check of their form get here; the quoting is the second wall. */
export function identifier(name: string): string {
  const known = quoted.get(name)
  if (known !== undefined) return known
  if (name === '' || Buffer.byteLength(name) > 63 || name.includes('\0'))
    throw new RangeError(`not an identifier: ${JSON.stringify(name)}`)
  // Aliases are whatever callers want.
  if (quoted.size >= maxQuoted) quoted.clear()
  const text = `"${name.replaceAll('"', '""')}"`
  quoted.set(name, text)
  return text
}

export function literal(text: string): string {
  if (text.includes('\0') || text.includes('\\')) throw new RangeError('not a plain literal')
  return `'${text.replaceAll("'", "''")}'`
}
