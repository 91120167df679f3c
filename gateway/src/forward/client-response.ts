// The client's side of one forwarded request: its body, the response on its connection, and whether that connection may
// serve another request.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Rejection } from '../errors.ts'
import { beginRejection } from '../http/rejection.ts'
import type { Limits } from '../limits.ts'
import { endBeforeRequest } from './leftover.ts'
import type { PassedBytes } from './passed-bytes.ts'
import { ReaderWait, type ReaderEvents } from './reader-wait.ts'
import { RequestBody } from './request-body.ts'
import type { ResponseHeaders } from './response-head.ts'

interface ClientResponseOptions {
  request: IncomingMessage
  response: ServerResponse
  requestId: string
  hasBody: boolean
  passed: PassedBytes
  limits: Limits
  /** Whether the gateway is stopping: connections end with their current response. */
  isClosing: () => boolean
}

/**
 * Whether the connection may serve another request. Until a client that expects `100 Continue` got it, nobody knows
 * whether its next bytes are the body or another request.
 */
type Reuse = 'allowed' | 'awaits-continue' | 'never'

export class ClientResponse {
  readonly #options: ClientResponseOptions
  #reuse: Reuse = 'allowed'
  /** The request's body, when it is being sent to a runtime. */
  #body: RequestBody | undefined
  /** Of a client that did not take a chunk at once. */
  #readerWait: ReaderWait | undefined

  constructor(options: ClientResponseOptions) {
    this.#options = options
    // A client that leaves is noticed on its connection; writing on meanwhile must not end the process.
    options.response.on('error', ignore)
  }

  get isHead(): boolean {
    return this.#options.request.method === 'HEAD'
  }

  get hasWholeRequest(): boolean {
    return this.#options.request.complete
  }

  /** Whether the connection ends with this response. */
  get isLast(): boolean {
    return this.#reuse !== 'allowed' || this.#options.isClosing()
  }

  /** @param onIdle called when the client stops sending */
  openBody(onIdle: () => void): RequestBody {
    const { request, passed, limits } = this.#options
    this.#body = new RequestBody(request, { idleTimeout: limits.bodyIdleTimeout, passed, onIdle })
    return this.#body
  }

  /** The client sends its body after `sendContinue` only. */
  awaitContinue(): void {
    if (this.#reuse === 'allowed') this.#reuse = 'awaits-continue'
  }

  sendContinue(): void {
    if (this.#reuse === 'awaits-continue') this.#reuse = 'allowed'
    this.#options.response.writeContinue()
  }

  /** The connection serves no other request, whatever has come on it. */
  neverReuse(): void {
    this.#reuse = 'never'
  }

  /** Passes on an interim response (1xx) to a client that can read one. */
  inform(status: number, headers: ResponseHeaders): void {
    const { request, response } = this.#options
    if (request.httpVersion !== '1.1' || status === 100 || status === 101) return
    const interim: Record<string, string | string[]> = {}
    for (const [name, value] of Object.entries(headers)) if (value !== undefined) interim[name] = value
    response.writeInformation(status, interim)
  }

  /** @param headers name, value, … @returns false when the head cannot be written: nothing went out */
  writeHead(status: number, headers: string[]): boolean {
    try {
      this.#options.response.writeHead(status, headers)
      return true
    } catch {
      return false
    }
  }

  /** Sends the head before there is any of the body. */
  flushHead(): void {
    this.#options.response.flushHeaders()
  }

  /** @returns the body, still to be written */
  writeRejectionHead(rejection: Rejection): Buffer {
    const { response, requestId } = this.#options
    return beginRejection(response, rejection, requestId, this.isLast)
  }

  /** @returns false when the client takes no more for now: see `awaitReader` */
  write(chunk: Buffer): boolean {
    return this.#options.response.write(chunk)
  }

  /** Calls `readerReady` whenever the client takes more from now on, or else `readerIdle` after a while. */
  awaitReader(reader: ReaderEvents): void {
    const { response, limits } = this.#options
    this.#readerWait ??= new ReaderWait(response, limits.readerIdleTimeout, reader)
    this.#readerWait.start()
  }

  /** No more of the request is read for a runtime, and no reader is waited for. */
  release(): void {
    this.#readerWait?.stop()
    this.#body?.destroy()
  }

  /**
   * Ends the response after `release`, and reads on what is left of the request.
   * @param last the last chunk of the body
   * @param hasLength whether the client knows the body's length
   */
  end(last: Buffer | undefined, hasLength: boolean): void {
    const { request, response, hasBody, limits } = this.#options
    const isArriving = hasBody && this.#reuse === 'allowed' && !request.complete && !request.destroyed
    if (isArriving) endBeforeRequest(response, last, hasLength, limits)
    else response.end(last)
  }

  /** Cuts the connection, so that nobody takes a part for the whole. */
  destroy(): void {
    this.#options.response.destroy()
  }

  /** Leaves the connection to another protocol. */
  detach(): void {
    const { request, response } = this.#options
    response.detachSocket(request.socket)
  }
}

function ignore(): void {}
