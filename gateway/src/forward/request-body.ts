// A client's body on its way to a runtime. It separates the two streams, so that the end of one does not end the other.
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { PassedBytes } from './passed-bytes.ts'

interface RequestBodyOptions {
  /** The maximum number of milliseconds between two chunks. */
  idleTimeout: number
  passed: PassedBytes
  /** Called when the client sends nothing although the gateway would read it. */
  onIdle: () => void
}

export class RequestBody extends Readable {
  readonly #request: IncomingMessage
  readonly #options: RequestBodyOptions
  #timer: NodeJS.Timeout | undefined
  #waiting = false

  constructor(request: IncomingMessage, options: RequestBodyOptions) {
    super({ highWaterMark: 64 * 1024 })
    this.#request = request
    this.#options = options
    // The reader ends this body with an error when the runtime fails, which the response's side handles by itself.
    this.on('error', () => undefined)
  }

  /** Whether any of the body may have been read, so that the request cannot be sent a second time. */
  get isStarted(): boolean {
    return this.#timer !== undefined
  }

  override _read(): void {
    this.#waiting = true
    if (this.#timer === undefined) this.#begin()
    else this.#timer.refresh()
    this.#request.resume()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#detach()
    done(error)
  }

  #begin(): void {
    this.#timer = setTimeout(() => {
      if (this.#waiting) this.#options.onIdle()
      else this.#timer?.refresh()
    }, this.#options.idleTimeout)
    this.#request.on('data', this.#onData)
    this.#request.on('end', this.#onEnd)
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#timer?.refresh()
    this.#options.passed.add(chunk.length)
    if (this.push(chunk)) return
    this.#waiting = false
    this.#request.pause()
  }

  readonly #onEnd = (): void => {
    this.#detach()
    this.push(null)
  }

  #detach(): void {
    clearTimeout(this.#timer)
    this.#request.off('data', this.#onData)
    this.#request.off('end', this.#onEnd)
    this.#request.pause()
  }
}
