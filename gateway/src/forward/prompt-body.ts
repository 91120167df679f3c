// A small body that arrives with the head of its request, as most do. It goes to the runtime with the head in one write, which
// takes a quarter less of the gateway's CPU time than a stream.
import type { IncomingMessage } from 'node:http'
import type { BodyShare } from './body-budget.ts'

/** Bytes of the largest body that is read as a whole. */
const maxBytes = 16 * 1024

/** Whether a body may be read as a whole. @param contentLength the header; undefined for a body in chunks */
export function mayBePrompt(contentLength: string | undefined): boolean {
  return contentLength !== undefined && Number(contentLength) <= maxBytes
}

export class PromptBody {
  readonly #request: IncomingMessage
  readonly #share: BodyShare
  readonly #onRead: (body: Buffer | undefined) => void
  #chunks: Buffer[] = []
  #body: Buffer | undefined
  #immediate: NodeJS.Immediate | undefined

  /**
   * Reads what has arrived when the current round of the event loop ends.
   * @param share the body's part of the budget, which the body closes when it is destroyed
   * @param onRead receives the whole body, or undefined if it has not arrived; then nothing of it has been read
   */
  constructor(request: IncomingMessage, share: BodyShare, onRead: (body: Buffer | undefined) => void) {
    this.#request = request
    this.#share = share
    this.#onRead = onRead
    this.#immediate = setImmediate(this.#onLate)
    request.on('data', this.#onData)
    request.on('end', this.#onEnd)
    request.resume()
  }

  /** The body, once it was read. */
  get bytes(): Buffer | undefined {
    return this.#body
  }

  /** Ends the reading, and releases the body's part of the budget. `onRead` is not called any more. */
  destroy(): void {
    this.#detach()
    this.#share.close()
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#chunks.push(chunk)
  }

  readonly #onEnd = (): void => {
    this.#detach()
    const [first = Buffer.alloc(0)] = this.#chunks
    this.#body = this.#chunks.length > 1 ? Buffer.concat(this.#chunks) : first
    this.#chunks = []
    this.#share.hold(this.#body.length)
    this.#onRead(this.#body)
  }

  readonly #onLate = (): void => {
    this.destroy()
    for (const chunk of this.#chunks.toReversed()) this.#request.unshift(chunk)
    this.#chunks = []
    this.#onRead(undefined)
  }

  #detach(): void {
    if (this.#immediate === undefined) return
    clearImmediate(this.#immediate)
    this.#immediate = undefined
    this.#request.off('data', this.#onData)
    this.#request.off('end', this.#onEnd)
    this.#request.pause()
  }
}
