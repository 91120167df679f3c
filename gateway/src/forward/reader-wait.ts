// The wait for a client that takes less of a response than comes: until it takes more, for so long at most.
import type { ServerResponse } from 'node:http'

export interface ReaderEvents {
  /** The client takes more. */
  readerReady(): void
  /** The client has taken nothing for too long. */
  readerIdle(): void
}

export class ReaderWait {
  readonly #idleTimeout: number
  readonly #onIdle: () => void
  #timer: NodeJS.Timeout | undefined

  /** @param idleTimeout milliseconds */
  constructor(response: ServerResponse, idleTimeout: number, reader: ReaderEvents) {
    this.#idleTimeout = idleTimeout
    this.#onIdle = () => reader.readerIdle()
    response.on('drain', () => {
      this.stop()
      reader.readerReady()
    })
  }

  start(): void {
    this.stop()
    this.#timer = setTimeout(this.#onIdle, this.#idleTimeout)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
