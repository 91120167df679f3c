// Converts the times of log lines to texts of one form, which sort by time. Pure.

/**
 * Converts a time.
 * @returns `YYYY-MM-DDThh:mm:ss.nnnnnnnnnZ`; undefined unless the text is a time in UTC
 */
export function logTime(text: string): string | undefined {
  const [, seconds, fraction = ''] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|\+00:00)$/.exec(text) ?? []
  if (seconds === undefined || Number.isNaN(Date.parse(`${seconds}Z`))) return undefined
  return `${seconds}.${fraction.padEnd(9, '0')}Z`
}
