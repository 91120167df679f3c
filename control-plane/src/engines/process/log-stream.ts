// The logs of all services as one stream: pretty on a terminal, JSON otherwise. Whatever a service writes that is no
// JSON becomes the text of a line.
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import type { Logger } from 'pino'

const levels = new Set(['trace', 'debug', 'info', 'warn', 'error', 'fatal'])
const byNumber: Record<number, string> = { 10: 'trace', 20: 'debug', 30: 'info', 40: 'warn', 50: 'error', 60: 'fatal' }

/** Copies a service's lines into the log until the stream ends. */
export function followLog(service: string, stream: Readable, log: Logger): void {
  const child = log.child({ service })
  createInterface({ input: stream, crlfDelay: Infinity }).on('line', (line) => {
    if (line === '') return
    // Postgres writes no JSON: what looks like it was put there by somebody's statement.
    const { level, message, details } = service === 'postgres' ? readPostgresLine(line) : readLine(line)
    child[level](details, message)
  })
}

type Level = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal'

function readLine(line: string): { level: Level; message: string; details: object } {
  if (line.startsWith('{')) {
    try {
      const { level, msg, time, pid, hostname, service, ...details } = JSON.parse(line) as Record<string, unknown>
      return { level: levelOf(level), message: typeof msg === 'string' ? msg : '', details }
    } catch {
      // No JSON after all.
    }
  }
  return { level: 'info', message: line, details: {} }
}

/** `LOG:  text` */
function readPostgresLine(line: string): { level: Level; message: string; details: object } {
  const match = /^(DEBUG\d?|LOG|INFO|NOTICE|WARNING|ERROR|FATAL|PANIC|DETAIL|HINT|STATEMENT|CONTEXT):\s+(.*)$/.exec(line)
  if (match === null) return { level: 'info', message: line, details: {} }
  const severity = match[1] ?? ''
  const level = severity === 'PANIC' ? 'fatal' : severity === 'FATAL' || severity === 'WARNING' ? 'warn' : severity === 'ERROR' ? 'info' : 'debug'
  return { level, message: match[2] ?? '', details: { severity } }
}

function levelOf(value: unknown): Level {
  const name = typeof value === 'number' ? byNumber[value] : value
  return typeof name === 'string' && levels.has(name) ? (name as Level) : 'info'
}
