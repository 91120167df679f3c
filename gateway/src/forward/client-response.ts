// The client's side of one forwarded request: its body, the response on its connection, and whether that connection may
// serve another request.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ByteTurns } from '@tenantry/contract'
import type { Rejection } from '../errors.ts'
import { beginRejection } from '../http/rejection.ts'
import type { Limits } from '../limits.ts'
import type { BodyBudget, BodyHolder } from './body-budget.ts'
import { endBeforeRequest } from './end-before-request.ts'
import type { PassedBytes } from './passed-bytes.ts'
import { PromptBody } from './prompt-body.ts'
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
  /** Whether the gateway is stopping, so that connections end with their current response. */
  isClosing: () => boolean
  /** The budget of all bodies, and the tenant and the client address whose part this body is. */
  bodies: BodyBudget
  /** The turns in which the bytes of tenants pass, and those in which the rest of requests is read whose response was sent. */
  turns: ByteTurns
  remainingTurns: ByteTurns
  tenantId: string
  bodyHolder: BodyHolder
  /** Returns monotonic milliseconds. */
  elapsed: () => number
}

/**
 * Whether the connection may serve another request. Until a client that expects `100 Continue` receives it, the gateway
 * cannot know whether the next bytes are the body or another request.
 */
type Reuse = 'allowed' | 'awaits-continue' | 'never'

export class ClientResponse {
  readonly #options: ClientResponseOptions
  #reuse: Reuse = 'allowed'
  /** The request's body while it is being sent to a runtime. */
  #body: RequestBody | PromptBody | undefined
  /** The wait for a client that did not accept a chunk at once. */
  #readerWait: ReaderWait | undefined

  constructor(options: ClientResponseOptions) {
    this.#options = options
    // The gateway notices on the connection that a client has left. Until then a failing write must not end the process.
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

  /**
   * Opens the request's body.
   * @param onIdle called when the client stops sending
   * @param onRejected called when the body breaks a rule
   */
  openBody(onIdle: () => void, onRejected: (rejection: Rejection) => void): RequestBody {
    const { request, passed, limits, bodies, turns, tenantId, bodyHolder, elapsed } = this.#options
    const body = new RequestBody(request, {
      idleTimeout: limits.bodyIdleTimeout,
      minRate: limits.bodyBytesPerSecond,
      maxLag: limits.bodyLag,
      elapsed,
      passed,
      turns,
      tenantId,
      budget: bodies,
      share: bodies.open(tenantId, bodyHolder),
      onIdle,
      onRejected,
    })
    this.#body = body
    return body
  }

  /**
   * Reads a small body that has arrived with the head.
   * @param onRead receives it; undefined if it has not arrived, or if the body must wait for others. Then `openBody` reads it
   */
  readPromptBody(onRead: (body: Buffer | undefined) => void): void {
    const { request, passed, bodies, turns, tenantId, bodyHolder } = this.#options
    const before = this.#body instanceof PromptBody ? this.#body.bytes : undefined
    if (before !== undefined) {
      onRead(before)
      return
    }
    const share = bodies.open(tenantId, bodyHolder)
    if (share.hasRoom && !turns.isOver(tenantId)) {
      this.#body = new PromptBody(request, share, (body) => {
        if (body !== undefined) passed.add(body.length)
        onRead(body)
      })
    } else {
      share.close()
      onRead(undefined)
    }
  }

  /** Notes that the client sends its body only after `sendContinue`. */
  awaitContinue(): void {
    if (this.#reuse === 'allowed') this.#reuse = 'awaits-continue'
  }

  sendContinue(): void {
    if (this.#reuse === 'awaits-continue') this.#reuse = 'allowed'
    this.#options.response.writeContinue()
  }

  /** Makes the connection serve no further request, whatever has arrived on it. */
  neverReuse(): void {
    this.#reuse = 'never'
  }

  /** Forwards an interim response (1xx) to a client that can read it. */
  inform(status: number, headers: ResponseHeaders): void {
    const { request, response } = this.#options
    if (request.httpVersion !== '1.1' || status === 100 || status === 101) return
    const interim: Record<string, string | string[]> = {}
    for (const [name, value] of Object.entries(headers)) if (value !== undefined) interim[name] = value
    response.writeInformation(status, interim)
  }

  /**
   * Writes the head.
   * @param headers name, value, …
   * @returns false when the head cannot be written, and nothing was sent
   */
  writeHead(status: number, headers: string[]): boolean {
    try {
      this.#options.response.writeHead(status, headers)
      return true
    } catch {
      return false
    }
  }

  /** Sends the head before any of the body. */
  flushHead(): void {
    this.#options.response.flushHeaders()
  }

  /**
   * Writes the head of a rejection.
   * @returns the body, which the caller must write
   */
  writeRejectionHead(rejection: Rejection): Buffer {
    const { response, requestId } = this.#options
    return beginRejection(response, rejection, requestId, this.isLast)
  }

  /**
   * Writes a chunk of the body.
   * @returns false when the client accepts no more for now: see `awaitReader`
   */
  write(chunk: Buffer): boolean {
    return this.#options.response.write(chunk)
  }

  /** Calls `readerReady` whenever the client accepts more, or `readerIdle` when it accepts nothing for too long. */
  awaitReader(reader: ReaderEvents): void {
    const { response, limits } = this.#options
    this.#readerWait ??= new ReaderWait(response, limits.readerIdleTimeout, reader)
    this.#readerWait.start()
  }

  /** Stops reading the request's body for a runtime, and stops waiting for the reader. */
  release(): void {
    this.#readerWait?.stop()
    this.#body?.destroy()
  }

  /**
   * Ends the response after `release`, and reads the remaining request.
   * @param last the last chunk of the body
   * @param hasLength whether the client knows the body's length
   */
  end(last: Buffer | undefined, hasLength: boolean): void {
    const { request, response, hasBody, limits, remainingTurns: turns, tenantId } = this.#options
    const isArriving = hasBody && this.#reuse === 'allowed' && !request.complete && !request.destroyed
    if (isArriving) endBeforeRequest(response, last, { isComplete: hasLength, limits, turns, tenantId })
    else response.end(last)
  }

  /** Destroys the connection, so that the client cannot mistake a part for the whole. */
  destroy(): void {
    this.#options.response.destroy()
  }

  /** Detaches the connection from HTTP, for another protocol. */
  detach(): void {
    const { request, response } = this.#options
    response.detachSocket(request.socket)
  }
}

function ignore(): void {}
