// The log of one run as lines: whole ones, each with the time at which it began, without secrets.
import { StringDecoder } from 'node:string_decoder'
import type { LogLevel } from '../executor/protocol.ts'

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
const mostLines = 2_000

export class RunLines {
  readonly #now: () => number
  readonly #lines: LogLine[] = []
  /** What each level has begun to say. */
  readonly #open = new Map<LogLevel, Open>()
  #left = 0

  constructor(now: () => number) {
    this.#now = now
  }

  add(level: LogLevel, piece: Buffer): void {
    const at = this.#now()
    const open = this.#open.get(level) ?? { decoder: new StringDecoder('utf8'), at, text: '' }
    this.#open.set(level, open)
    if (open.text === '') open.at = at
    const [first = '', ...more] = (open.text + open.decoder.write(piece)).split('\n')
    open.text = first
    for (const text of more) {
      this.#keep({ at: open.at, level, message: open.text })
      open.at = at
      open.text = text
    }
  }

  /** The last that was said, as one text of at most `length` characters. */
  tail(length: number): string {
    const open = [...this.#open.values()].map(({ text }) => text)
    return [...this.#lines.slice(-length).map(({ message }) => message), ...open].join('\n').trim().slice(-length)
  }

  /** @param cut bytes that were not taken */
  end(cut: number): LogLine[] {
    for (const [level, { at, text, decoder }] of this.#open) this.#keep({ at, level, message: text + decoder.end() })
    this.#open.clear()
    if (cut > 0 || this.#left > 0) {
      const what = [...(this.#left > 0 ? [`${this.#left} lines`] : []), ...(cut > 0 ? [`${cut} bytes`] : [])].join(' and ')
      this.#lines.push({ at: this.#now(), level: 'warn', message: `[${what} more were not kept]` })
    }
    return this.#lines
  }

  #keep(line: LogLine): void {
    // NUL is what Postgres can't store.
    const message = line.message.replace(/\r$/, '').replaceAll('\0', '\ufffd')
    if (message === '') return
    if (this.#lines.length >= mostLines) this.#left++
    else this.#lines.push({ ...line, message })
  }
}
