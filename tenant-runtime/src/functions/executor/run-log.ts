// The log of one run: what is written goes out at once, until there is no more room. Whoever writes very often is sent in
// larger pieces, so that no flood of single characters is one of frames. Runs in the executor's process only.
import type { LogLevel } from './protocol.ts'

/** So many writes go out as they are; then pieces of this size do. */
const single = 256
const chunkBytes = 1_024

export class RunLog {
  readonly #send: (level: LogLevel, text: Uint8Array) => void
  #room: number
  #writes = 0
  #held: { level: LogLevel; texts: Uint8Array[]; bytes: number } | undefined
  /** Bytes that there was no room for. */
  cut = 0

  constructor(limit: number, send: (level: LogLevel, text: Uint8Array) => void) {
    this.#room = limit
    this.#send = send
  }

  write(level: LogLevel, text: Uint8Array): void {
    const stored = text.subarray(0, this.#room)
    this.#room -= stored.length
    this.cut += text.length - stored.length
    if (stored.length === 0) return
    if (this.#writes++ < single) this.#send(level, stored)
    else this.#hold(level, stored)
  }

  /** What is held back goes out. */
  end(): void {
    const held = this.#held
    this.#held = undefined
    if (held !== undefined) this.#send(held.level, Buffer.concat(held.texts))
  }

  #hold(level: LogLevel, text: Uint8Array): void {
    if (this.#held !== undefined && this.#held.level !== level) this.end()
    const held = (this.#held ??= { level, texts: [], bytes: 0 })
    // The guest's memory is its own to change.
    held.texts.push(Buffer.from(text))
    held.bytes += text.length
    if (held.bytes >= chunkBytes) this.end()
  }
}
