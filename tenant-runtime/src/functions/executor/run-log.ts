// The log of one run. Writes are sent at once up to a limit of bytes. After many writes they are gathered into chunks, so that
// many small writes do not cause as many frames. Runs in the executor's process only.
import type { LogLevel } from './protocol.ts'

/** Number of writes that are sent at once. */
const immediateWrites = 256
/** Bytes of the chunks in which later writes are sent. */
const chunkBytes = 1_024

export class RunLog {
  readonly #send: (level: LogLevel, text: Uint8Array) => void
  #remainingBytes: number
  #writes = 0
  #gathered: { level: LogLevel; texts: Uint8Array[]; bytes: number } | undefined
  /** Bytes beyond the limit. */
  cut = 0

  constructor(limit: number, send: (level: LogLevel, text: Uint8Array) => void) {
    this.#remainingBytes = limit
    this.#send = send
  }

  write(level: LogLevel, text: Uint8Array): void {
    const accepted = text.subarray(0, this.#remainingBytes)
    this.#remainingBytes -= accepted.length
    this.cut += text.length - accepted.length
    if (accepted.length === 0) return
    if (this.#writes++ < immediateWrites) this.#send(level, accepted)
    else this.#gather(level, accepted)
  }

  /** Sends the gathered text. */
  end(): void {
    const gathered = this.#gathered
    this.#gathered = undefined
    if (gathered !== undefined) this.#send(gathered.level, Buffer.concat(gathered.texts))
  }

  #gather(level: LogLevel, text: Uint8Array): void {
    if (this.#gathered !== undefined && this.#gathered.level !== level) this.end()
    const gathered = (this.#gathered ??= { level, texts: [], bytes: 0 })
    // Copied, because the text is in the module's memory, which it may change.
    gathered.texts.push(Buffer.from(text))
    gathered.bytes += text.length
    if (gathered.bytes >= chunkBytes) this.end()
  }
}
