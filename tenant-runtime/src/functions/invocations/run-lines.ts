// Divides the log of one run into lines, each with the time of its beginning, and removes secrets.
import { StringDecoder } from 'node:string_decoder'
import type { LogLevel } from '../executor/protocol.ts'
import type { Secrets } from './redact.ts'

export interface LogLine {
  /** Time of the line's beginning, in milliseconds since 1970. */
  at: number
  level: LogLevel
  message: string
}

interface OpenLine {
  decoder: StringDecoder
  at: number
  text: string
}

/** Maximum number of lines that are stored of one run. */
export const maxLines = 2_000

export class RunLines {
  readonly #now: () => number
  readonly #lines: LogLine[] = []
  /** The incomplete line of each level. */
  readonly #open = new Map<LogLevel, OpenLine>()
  #dropped = 0

  constructor(now: () => number) {
    this.#now = now
  }

  add(level: LogLevel, chunk: Buffer): void {
    const at = this.#now()
    const open = this.#open.get(level) ?? { decoder: new StringDecoder('utf8'), at, text: '' }
    this.#open.set(level, open)
    if (open.text === '') open.at = at
    const [first = '', ...more] = open.decoder.write(chunk).split('\n')
    open.text += first
    for (const text of more) {
      this.#add({ at: open.at, level, message: open.text })
      open.at = at
      open.text = text
    }
  }

  /**
   * Returns all lines after the end of the run.
   * @param cut bytes beyond the limit of the log
   * @param isBroken whether the run was stopped, possibly within a line
   */
  end(secrets: Secrets, cut: number, isBroken: boolean): LogLine[] {
    for (const [level, { at, text, decoder }] of this.#open) this.#add({ at, level, message: text + decoder.end() })
    this.#open.clear()
    const lines = withoutSecrets(this.#lines, secrets, isBroken || cut > 0 || this.#dropped > 0)
    if (cut > 0 || this.#dropped > 0) {
      const missing = [
        ...(this.#dropped > 0 ? [`${this.#dropped} lines`] : []),
        ...(cut > 0 ? [`${cut} bytes`] : []),
      ].join(' and ')
      lines.push({ at: this.#now(), level: 'warn', message: `[${missing} more were not stored]` })
    }
    return lines
  }

  #add(line: LogLine): void {
    // Postgres can't store NUL.
    const message = line.message.replace(/\r$/, '').replaceAll('\0', '\ufffd')
    if (message === '') return
    if (this.#lines.length >= maxLines) this.#dropped++
    else this.#lines.push({ ...line, message })
  }
}

/** Removes secrets, also those that are divided by line breaks, by lines of another level, or over several levels. */
function withoutSecrets(lines: readonly LogLine[], secrets: Secrets, isCut: boolean): LogLine[] {
  const shown = lines.map((line) => ({ ...line }))
  const levels = new Set(lines.map(({ level }) => level))
  const passes = [...levels].map((level) => shown.filter((line) => line.level === level))
  for (const pass of levels.size > 1 ? [...passes, shown] : passes) {
    const messages = secrets.redact(pass.map(({ message }) => message).join('\n'), isCut).split('\n')
    for (const [n, line] of pass.entries()) line.message = messages[n] ?? ''
  }
  return shown
}

/** Returns the end of the log as a text of at most `length` characters. */
export function tailOf(lines: readonly LogLine[], length: number): string {
  return lines
    .slice(-length)
    .map(({ message }) => message)
    .join('\n')
    .trim()
    .slice(-length)
}
