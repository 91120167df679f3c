// Converts a line of a service's output to a line of the log. JSON retains its level and fields; any other line is a
// message. Pure.

export type Level = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal'

export interface LogLine {
  level: Level
  message: string
  details: object
}

const levels = new Set(['trace', 'debug', 'info', 'warn', 'error', 'fatal'])
const byNumber: Record<number, string> = { 10: 'trace', 20: 'debug', 30: 'info', 40: 'warn', 50: 'error', 60: 'fatal' }

export function readServiceLine(service: string, line: string): LogLine {
  // Postgres writes no JSON, so a line like it comes from a client's statement.
  const { level, message, details } = service === 'postgres' ? readPostgresLine(line) : readLine(line)
  return { level, message: printable(message), details }
}

function readLine(line: string): LogLine {
  if (line.startsWith('{')) {
    try {
      const { level, msg, time, pid, hostname, service, ...details } = JSON.parse(line) as Record<string, unknown>
      return { level: levelOf(level), message: typeof msg === 'string' ? msg : '', details }
    } catch {
      // The line is not JSON.
    }
  }
  return { level: 'info', message: line, details: {} }
}

/** Parses `LOG:  text`. */
function readPostgresLine(line: string): LogLine {
  const match = /^(DEBUG\d?|LOG|INFO|NOTICE|WARNING|ERROR|FATAL|PANIC|DETAIL|HINT|STATEMENT|CONTEXT):\s+(.*)$/.exec(
    line,
  )
  if (match === null) return { level: 'info', message: line, details: {} }
  const severity = match[1] ?? ''
  const level =
    severity === 'PANIC'
      ? 'fatal'
      : severity === 'FATAL' || severity === 'WARNING'
        ? 'warn'
        : severity === 'ERROR'
          ? 'info'
          : 'debug'
  return { level, message: match[2] ?? '', details: { severity } }
}

function levelOf(value: unknown): Level {
  const name = typeof value === 'number' ? byNumber[value] : value
  return typeof name === 'string' && levels.has(name) ? (name as Level) : 'info'
}

/** Replaces control characters, which could control the operator's terminal. */
function printable(text: string): string {
  return text.replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, '\ufffd')
}
