// Comma-separated values (RFC 4180): a header line, and lines that end in CR LF. Pure.

/** Formats a table as CSV, with null as an empty field. @param rows each as long as `header` */
export function csv(
  header: readonly string[],
  rows: Iterable<readonly (string | number | bigint | boolean | null)[]>,
): string {
  const lines = [header.map(quoted).join(',')]
  for (const row of rows) lines.push(row.map((value) => (value === null ? '' : quoted(String(value)))).join(','))
  return `${lines.join('\r\n')}\r\n`
}

function quoted(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
