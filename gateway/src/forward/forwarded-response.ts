// One forwarded request and its response: the effects of the runtime, the client, the tenant's quota and the gateway in the
// states of `response-state.ts`. Uses no socket directly: see `client-response.ts`.
import type { ByteTurns } from '@tenantry/contract'
import { rejections, type Rejection } from '../errors.ts'
import type { Admission, TenantGate } from '../quota/quota.ts'
import type { ClientResponse } from './client-response.ts'
import type { LiveConnections } from './live-connections.ts'
import type { PassedBytes } from './passed-bytes.ts'
import type { ReaderEvents } from './reader-wait.ts'
import { clientClosedRequest, type RequestAccount } from './request-account.ts'
import type { RequestBody } from './request-body.ts'
import { responseHead, type ResponseHeaders, type ResponseHead } from './response-head.ts'
import {
  IllegalTransitionError,
  abortableOf,
  admit,
  awaitSlot,
  awaitsHead,
  forward,
  over,
  passBytes,
  proceed,
  queue,
  received,
  requireAdmitted,
  requireForwarded,
  send,
  slotDecided,
  waitFor,
  wasForwarded,
  type Abortable,
  type ResponseSource,
  type ResponseState,
} from './response-state.ts'

interface ForwardedResponseOptions {
  client: Pick<ClientResponse, keyof ClientResponse>
  account: RequestAccount
  gate: Pick<TenantGate, 'open' | 'closed' | 'addHeaders'>
  live: LiveConnections
  passed: PassedBytes
  turns: ByteTurns
  tenantId: string
  requestId: string
  /** Called once, when the request is over on both sides. */
  onOver: (response: ForwardedResponse) => void
}

export class ForwardedResponse implements ReaderEvents {
  readonly #options: ForwardedResponseOptions
  #state: ResponseState = received
  #leaveTurn = () => {}

  constructor(options: ForwardedResponseOptions) {
    this.#options = options
  }

  get isOver(): boolean {
    return this.#state === over
  }

  /** Whether no head of a runtime has arrived and none was made, so that the request may be sent again. */
  get awaitsHead(): boolean {
    return awaitsHead(this.#state)
  }

  // Progress towards a runtime.

  /** Notes that the request waits for its turn, or for its tenant's quota. */
  queue(wait: Abortable): void {
    this.#state = queue(this.#state, wait)
  }

  /** Notes that the tenant's quota admits the request. */
  admit(admission: Admission | undefined): void {
    if (this.isOver) return
    this.#state = admit(this.#state)
    this.#options.account.admit(admission)
  }

  /** Notes that the admitted request waits for its tenant to wake, for a later try, for a connection or for a slot. */
  waitFor(wait: Abortable): void {
    this.#state = waitFor(this.#state, wait)
  }

  /** Ends the wait. */
  proceed(): void {
    this.#state = proceed(this.#state)
  }

  /** Notes that from now on a runtime may have some of the request. */
  forwardedTo(call: Abortable): void {
    this.#state = forward(this.#state, call)
  }

  /**
   * Reads a small body that has arrived with the head, unless the request is over.
   * @param next receives it, or undefined: then `takeBody` reads it
   */
  readPromptBody(next: (body: Buffer | undefined) => void): void {
    requireAdmitted(this.#state, 'read its body')
    if (this.isOver) return
    this.#options.client.readPromptBody((body) => {
      if (!this.isOver) next(body)
    })
  }

  /** Opens the client's body for a runtime. A client that stops sending it, or whose body breaks a rule, receives a rejection. */
  takeBody(): RequestBody {
    requireAdmitted(this.#state, 'send its body')
    return this.#options.client.openBody(
      () => this.giveUpAndClose(rejections.bodyTimeout),
      (rejection) => this.giveUpAndClose(rejection),
    )
  }

  /** Notes that the client waits for `100 Continue` before it sends its body. `requestBody` requests the body. */
  awaitContinue(): void {
    requireAdmitted(this.#state, 'await its body')
    if (!this.isOver) this.#options.client.awaitContinue()
  }

  /** Requests the body from the client, unless the response has begun. */
  requestBody(): RequestBody | undefined {
    if (!this.awaitsHead) return undefined
    const body = this.takeBody()
    this.#options.client.sendContinue()
    return body
  }

  // Events of the runtime.

  /** Forwards an interim response (1xx). One that arrives too late is dropped. */
  inform(status: number, headers: ResponseHeaders): void {
    if (this.#state.phase === 'forwarded') this.#options.client.inform(status, headers)
  }

  /** Begins the response with the runtime's head. An event stream waits here for its slot. */
  begin(status: number, response: ResponseHeaders, source: ResponseSource): void {
    const state = this.#state
    if (state.phase === 'over') return
    requireForwarded(state, 'begin its response')
    const { requestId, gate } = this.#options
    const head = responseHead(response, requestId, status)
    if (!head.isEventStream) {
      this.#send(status, head, source, false)
      return
    }
    const slot = gate.open(() => ({
      go: () => this.#slotDecided(true),
      reject: (rejection) => this.#rejectSlot(rejection),
    }))
    if (slot === undefined) this.#send(status, head, source, true)
    else if (typeof slot === 'function') {
      this.#state = awaitSlot(state, { source, status, head, leave: slot })
      source.pause()
    } else this.giveUp(slot)
  }

  write(chunk: Buffer): void {
    const state = this.#state
    if (state.phase === 'sending') {
      const { client, account, passed, turns, tenantId } = this.#options
      account.egress(chunk.length)
      passed.add(chunk.length)
      turns.add(tenantId, chunk.length)
      // The last chunk and the end go out in one write.
      if (passBytes(state, chunk.length)) this.#conclude(chunk, true)
      else if (!client.write(chunk)) {
        state.source.pause()
        client.awaitReader(this)
      } else if (turns.isOver(tenantId)) {
        state.source.pause()
        this.#leaveTurn = turns.wait(tenantId, () => this.readerReady())
      }
    } else if (state.phase === 'awaiting-slot') state.chunks.push(chunk)
    else if (state.phase !== 'over') throw new IllegalTransitionError('send a body', state)
  }

  end(): void {
    if (this.#state.phase === 'awaiting-slot') {
      // The stream has already ended and needs no slot.
      this.#state.leave()
      this.#slotDecided(false)
    }
    const state = this.#state
    if (state.phase === 'sending') this.#conclude(undefined, state.remaining !== undefined)
    else if (state.phase !== 'over') throw new IllegalTransitionError('end its response', state)
  }

  /** Ends the exchange because the connection continues in another protocol. */
  switchProtocols(): void {
    if (this.isOver) return
    requireForwarded(this.#state, 'switch protocols')
    this.#options.client.detach()
    this.#options.account.count(101, true)
    this.#finish()
  }

  /**
   * Ends the request after a failure of the runtime's side. The client receives an error while that is possible. Otherwise
   * its connection is destroyed, so that it cannot mistake a part for the whole.
   */
  fail(rejection: Rejection): void {
    if (this.#state.phase !== 'sending') {
      this.reject(rejection)
      return
    }
    this.#finish()
    this.#options.client.destroy()
  }

  // Events of the client.

  readerReady(): void {
    if (this.#state.phase === 'sending') this.#state.source.resume()
  }

  readerIdle(): void {
    this.giveUp(rejections.badGateway)
  }

  /** Ends the request because the client's connection is closed. */
  clientGone(): void {
    const state = this.#state
    if (state.phase === 'over') return
    const { account } = this.#options
    if (state.phase === 'queued') account.countRejected()
    else if (state.phase !== 'sending') account.count(clientClosedRequest, wasForwarded(state))
    this.#finish()
    abortableOf(state)?.abort(new Error('The client closed the connection.'))
  }

  /**
   * Rejects the request because its client's connection carries bytes that are not valid HTTP.
   * @returns false when the request is whole or its response has begun, so that the bytes belong to something else
   */
  rejectUnreadable(rejection: Rejection): boolean {
    if (!this.awaitsHead || this.#options.client.hasWholeRequest) return false
    this.giveUpAndClose(rejection)
    return true
  }

  // Actions of the gateway itself.

  /** Sends a response of the gateway's own. Possible only before the runtime's head was sent. */
  reject(rejection: Rejection): void {
    const state = this.#state
    if (state.phase === 'over') return
    if (state.phase === 'sending') throw new IllegalTransitionError('be rejected', state)
    const { client, account } = this.#options
    const body = client.writeRejectionHead(rejection)
    if (rejection.isQuota === true) account.countRejected()
    else account.count(rejection.status, wasForwarded(state))
    if (!client.isHead) account.egress(body.length)
    this.#conclude(body, true)
  }

  /** Sends a response of the gateway's own, after which the connection serves no further request. */
  rejectAndClose(rejection: Rejection): void {
    if (this.isOver) return
    this.#options.client.neverReuse()
    this.reject(rejection)
  }

  /** Gives up the request: sends the client an error while that is possible, and aborts the runtime's call. */
  giveUp(rejection: Rejection): void {
    const abortable = abortableOf(this.#state)
    this.fail(rejection)
    abortable?.abort(new Error(rejection.message))
  }

  /** Gives up the request, after which the connection serves no further one. */
  giveUpAndClose(rejection: Rejection): void {
    if (this.isOver) return
    this.#options.client.neverReuse()
    this.giveUp(rejection)
  }

  /**
   * Sends the head after the wait for a slot.
   * @param hasSlot false when the stream has already ended
   */
  #slotDecided(hasSlot: boolean): void {
    const state = this.#state
    if (state.phase !== 'awaiting-slot') return
    this.#state = slotDecided(state)
    this.#send(state.status, state.head, state.source, hasSlot)
    for (const chunk of state.chunks) this.write(chunk)
    if (hasSlot) this.readerReady()
  }

  #rejectSlot(rejection: Rejection): void {
    if (this.#state.phase !== 'awaiting-slot') return
    this.#state = slotDecided(this.#state)
    this.giveUp(rejection)
  }

  /** Sends the head and counts the request. Its status and its slot are known here, and nothing has ended yet. */
  #send(status: number, head: ResponseHead, source: ResponseSource, hasSlot: boolean): void {
    const { client, account, gate } = this.#options
    if (client.isLast) head.headers.push('connection', 'close')
    gate.addHeaders(head.headers)
    if (!client.writeHead(status, head.headers)) {
      if (hasSlot) gate.closed()
      this.reject(rejections.badGateway)
      source.abort(new Error('The head of the response cannot be forwarded.'))
      return
    }
    account.count(status, !head.isRejected)
    const hasBody = !client.isHead && status !== 204 && status !== 304
    const closeStream = hasSlot ? this.#openStream() : undefined
    this.#state = send(this.#state, source, hasBody ? head.length : undefined, closeStream)
    if (hasSlot) client.flushHead()
  }

  /**
   * Registers the stream.
   * @returns a function that closes it
   */
  #openStream(): () => void {
    const { account, gate, live, tenantId } = this.#options
    account.streamOpened()
    const removeLive = live.add(tenantId, () => this.giveUp(rejections.badGateway))
    return () => {
      gate.closed()
      removeLive()
      account.streamClosed()
    }
  }

  /**
   * Ends the response.
   * @param hasLength whether the client knows the body's length
   */
  #conclude(last: Buffer | undefined, hasLength: boolean): void {
    const { client, account } = this.#options
    // Releases the request first, because only one reader may consume its remaining body.
    this.#release()
    // No response ends before its counters are durable.
    account.whenWritten(() => {
      this.#options.onOver(this)
      client.end(last, hasLength)
    })
  }

  #finish(): void {
    this.#release()
    this.#options.onOver(this)
  }

  #release(): void {
    const state = this.#state
    this.#state = over
    this.#leaveTurn()
    this.#options.account.ended()
    if (state.phase === 'awaiting-slot') state.leave()
    else if (state.phase === 'sending') state.closeStream?.()
    this.#options.client.release()
  }
}
