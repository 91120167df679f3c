// The wait for a client that accepts a response more slowly than it arrives, with a time limit.
import type { ServerResponse } from 'node:http'

export interface ReaderEvents {
  /** Called when the client accepts more. */
  readerReady(): void
  /** Called when the client has accepted nothing for too long. */
  readerIdle(): void
}

export class ReaderWait {
  readonly #idleTimeout: number
  readonly #onIdle: () => void
  #timer: NodeJS.Timeout | undefined

  /**
   * Watches a response.
   * @param idleTimeout milliseconds
   */
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
