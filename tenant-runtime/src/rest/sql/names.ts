// Identifiers and literals in generated SQL. Values never come here: they are parameters.

/** Quotes an identifier. Only names that passed a check of their form get here; the quoting is the second wall. */
export function identifier(name: string): string {
  if (name === '' || Buffer.byteLength(name) > 63 || name.includes('\0')) throw new RangeError(`not an identifier: ${JSON.stringify(name)}`)
  return `"${name.replaceAll('"', '""')}"`
}

export function literal(text: string): string {
  if (text.includes('\0') || text.includes('\\')) throw new RangeError('not a plain literal')
  return `'${text.replaceAll("'", "''")}'`
}
