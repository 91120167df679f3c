// The log of one run: every write goes out at once, until there is no more room. Runs in the executor's process only.
import type { LogLevel } from './protocol.ts'

export class RunLog {
  readonly #send: (level: LogLevel, text: Uint8Array) => void
  #room: number
  /** Bytes that there was no room for. */
  cut = 0

  constructor(limit: number, send: (level: LogLevel, text: Uint8Array) => void) {
    this.#room = limit
    this.#send = send
  }

  write(level: LogLevel, text: Uint8Array): void {
    const kept = text.subarray(0, this.#room)
    this.#room -= kept.length
    this.cut += text.length - kept.length
    if (kept.length > 0) this.#send(level, kept)
  }
}
