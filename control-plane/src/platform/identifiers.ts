// Converts names and texts to SQL for statements that take no parameters (DDL).

/** Quotes an identifier. Names that Postgres would silently cut are rejected. */
export function identifier(name: string): string {
  if (name.length === 0 || Buffer.byteLength(name) > 63 || name.includes('\0')) {
    throw new RangeError(
      `Invalid Postgres identifier ${JSON.stringify(name.slice(0, 100))}. Allowed: 1 to 63 bytes without NUL.`,
    )
  }
  return `"${name.replaceAll('"', '""')}"`
}

/** Quotes a text literal for any value of `standard_conforming_strings`. */
export function literal(text: string): string {
  if (text.includes('\0')) throw new RangeError('A Postgres text cannot contain a NUL.')
  const quoted = `'${text.replaceAll("'", "''")}'`
  return quoted.includes('\\') ? `E${quoted.replaceAll('\\', '\\\\')}` : quoted
}
