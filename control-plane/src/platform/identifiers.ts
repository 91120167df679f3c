// The one place where names and texts become SQL in statements that take no parameters (DDL).

/** Quotes an identifier. Names longer than Postgres keeps are refused, because it would cut them silently. */
export function identifier(name: string): string {
  if (name.length === 0 || Buffer.byteLength(name) > 63 || name.includes('\0')) {
    throw new RangeError(`not a Postgres identifier: ${JSON.stringify(name)}`)
  }
  return `"${name.replaceAll('"', '""')}"`
}

/** Quotes a text literal, whatever `standard_conforming_strings` says. */
export function literal(text: string): string {
  if (text.includes('\0')) throw new RangeError('a Postgres text cannot hold a NUL')
  const quoted = `'${text.replaceAll("'", "''")}'`
  return quoted.includes('\\') ? `E${quoted.replaceAll('\\', '\\\\')}` : quoted
}
