// The log of one run as lines: whole ones, each with the time at which it began, without secrets.
import { StringDecoder } from 'node:string_decoder'
import type { LogLevel } from '../executor/protocol.ts'
import type { Secrets } from './redact.ts'

export interface LogLine {
  /** Milliseconds since 1970. */
  at: number
  level: LogLevel
  message: string
}

interface Open {
  decoder: StringDecoder
  at: number
  text: string
}

/** Of many lines that hold nothing else. */
export const maxLines = 2_000

export class RunLines {
  readonly #now: () => number
  readonly #lines: LogLine[] = []
  /** What each level has begun to say. */
  readonly #open = new Map<LogLevel, Open>()
  #left = 0

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
      this.#keep({ at: open.at, level, message: open.text })
      open.at = at
      open.text = text
    }
  }

  /**
   * All of it, once the run is over.
   * @param cut bytes that were not taken
   * @param isBroken it was stopped while it may have been saying something
   */
  end(secrets: Secrets, cut: number, isBroken: boolean): LogLine[] {
    for (const [level, { at, text, decoder }] of this.#open) this.#keep({ at, level, message: text + decoder.end() })
    this.#open.clear()
    const lines = withoutSecrets(this.#lines, secrets, isBroken || cut > 0 || this.#left > 0)
    if (cut > 0 || this.#left > 0) {
      const what = [...(this.#left > 0 ? [`${this.#left} lines`] : []), ...(cut > 0 ? [`${cut} bytes`] : [])].join(
        ' and ',
      )
      lines.push({ at: this.#now(), level: 'warn', message: `[${what} more were not kept]` })
    }
    return lines
  }

  #keep(line: LogLine): void {
    // NUL is what Postgres can't store.
    const message = line.message.replace(/\r$/, '').replaceAll('\0', '\ufffd')
    if (message === '') return
    if (this.#lines.length >= maxLines) this.#left++
    else this.#lines.push({ ...line, message })
  }
}

/** A secret may be torn apart: by line breaks, by lines of another level in between, by several levels. */
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

/** The last that was said, as one text of at most `length` characters. */
export function tailOf(lines: readonly LogLine[], length: number): string {
  return lines
    .slice(-length)
    .map(({ message }) => message)
    .join('\n')
    .trim()
    .slice(-length)
}
