// One forwarded request and its response: what a runtime, the client, the tenant's quota and the gateway do to it, in
// the states of `response-state.ts`. Touches no socket: that is `client-response.ts`.
import { rejections, type Rejection } from '../errors.ts'
import type { Admission, TenantGate } from '../quota/quota.ts'
import type { ClientResponse } from './client-response.ts'
import type { LiveConnections } from './live-connections.ts'
import type { PassedBytes } from './passed-bytes.ts'
import type { ReaderEvents } from './reader-wait.ts'
import type { RequestAccount } from './request-account.ts'
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
  tenantId: string
  requestId: string
  /** Called once, when nothing more happens on either side. */
  onOver: (response: ForwardedResponse) => void
}

/** What an HTTP log elsewhere calls 499: the client left before there was a response. */
const clientLeft = 499

export class ForwardedResponse implements ReaderEvents {
  readonly #options: ForwardedResponseOptions
  #state: ResponseState = received

  constructor(options: ForwardedResponseOptions) {
    this.#options = options
  }

  get isOver(): boolean {
    return this.#state === over
  }

  /** Whether no head of a runtime has come yet, and none was made: the request may be sent again. */
  get awaitsHead(): boolean {
    return awaitsHead(this.#state)
  }

  // The way to a runtime.

  /** The request waits for its tenant's quota. */
  queue(wait: Abortable): void {
    this.#state = queue(this.#state, wait)
  }

  /** The tenant's quota admits the request. */
  admit(admission: Admission | undefined): void {
    if (this.isOver) return
    this.#state = admit(this.#state)
    this.#options.account.admit(admission)
  }

  /** The admitted request waits: for its tenant to wake, for a later try, for a connection or for a slot. */
  waitFor(wait: Abortable): void {
    this.#state = waitFor(this.#state, wait)
  }

  /** The wait has ended by itself. */
  proceed(): void {
    this.#state = proceed(this.#state)
  }

  /** From now on a runtime may have some of the request. */
  forwardedTo(call: Abortable): void {
    this.#state = forward(this.#state, call)
  }

  /** The client's body for a runtime. A client that stops sending it gets a 408. */
  takeBody(): RequestBody {
    requireAdmitted(this.#state, 'send its body')
    return this.#options.client.openBody(() => this.giveUpAndClose(rejections.bodyTimeout))
  }

  /** The client waits for `100 Continue`: its body is asked for by `requestBody` only. */
  awaitContinue(): void {
    requireAdmitted(this.#state, 'await its body')
    if (!this.isOver) this.#options.client.awaitContinue()
  }

  /** Asks the client for its body, unless the response is there. */
  requestBody(): RequestBody | undefined {
    if (!this.awaitsHead) return undefined
    const body = this.takeBody()
    this.#options.client.sendContinue()
    return body
  }

  // What comes from the runtime.

  /** An interim response (1xx). One that comes late is dropped. */
  inform(status: number, headers: ResponseHeaders): void {
    if (this.#state.phase === 'forwarded') this.#options.client.inform(status, headers)
  }

  /** The runtime's head. An event stream waits here for its slot. */
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
      reject: (rejection) => this.#slotRejected(rejection),
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
      const { client, account, passed } = this.#options
      account.egress(chunk.length)
      passed.add(chunk.length)
      // The last chunk and the end in one write.
      if (passBytes(state, chunk.length)) this.#conclude(chunk, true)
      else if (!client.write(chunk)) {
        state.source.pause()
        client.awaitReader(this)
      }
    } else if (state.phase === 'awaiting-slot') state.chunks.push(chunk)
    else if (state.phase !== 'over') throw new IllegalTransitionError('send a body', state)
  }

  end(): void {
    if (this.#state.phase === 'awaiting-slot') {
      // It has ended already, and needs no slot.
      this.#state.leave()
      this.#slotDecided(false)
    }
    const state = this.#state
    if (state.phase === 'sending') this.#conclude(undefined, state.remaining !== undefined)
    else if (state.phase !== 'over') throw new IllegalTransitionError('end its response', state)
  }

  /** The connection continues in another protocol; nothing more comes through here. */
  switchProtocols(): void {
    if (this.isOver) return
    requireForwarded(this.#state, 'switch protocols')
    this.#options.client.detach()
    this.#options.account.count(101, true)
    this.#finish()
  }

  /**
   * The runtime's side failed. The client is told while that is possible; else its connection is cut, so that nobody
   * takes a part for the whole.
   */
  fail(rejection: Rejection): void {
    if (this.#state.phase !== 'sending') {
      this.reject(rejection)
      return
    }
    this.#finish()
    this.#options.client.destroy()
  }

  // What comes from the client.

  readerReady(): void {
    if (this.#state.phase === 'sending') this.#state.source.resume()
  }

  readerIdle(): void {
    this.giveUp(rejections.badGateway)
  }

  /** The client's connection is closed. */
  clientGone(): void {
    const state = this.#state
    if (state.phase === 'over') return
    const { account } = this.#options
    if (state.phase === 'queued') account.countRejected()
    else if (state.phase !== 'sending') account.count(clientLeft, wasForwarded(state))
    this.#finish()
    abortableOf(state)?.abort(new Error('the client left'))
  }

  /**
   * What follows on the client's connection cannot be read.
   * @returns whether it was part of this request, which was refused: not when the request is whole or its response begun
   */
  rejectUnreadable(rejection: Rejection): boolean {
    if (!this.awaitsHead || this.#options.client.hasWholeRequest) return false
    this.giveUpAndClose(rejection)
    return true
  }

  // What the gateway does by itself.

  /** The gateway responds by itself. Only before the runtime's head was sent. */
  reject(rejection: Rejection): void {
    const state = this.#state
    if (state.phase === 'over') return
    if (state.phase === 'sending') throw new IllegalTransitionError('be refused', state)
    const { client, account } = this.#options
    const body = client.writeRejectionHead(rejection)
    if (rejection.isQuota === true) account.countRejected()
    else account.count(rejection.status, wasForwarded(state))
    if (!client.isHead) account.egress(body.length)
    this.#conclude(body, true)
  }

  /** The same, and the connection serves no other request. */
  rejectAndClose(rejection: Rejection): void {
    if (this.isOver) return
    this.#options.client.neverReuse()
    this.reject(rejection)
  }

  /** The gateway gives up on the request: tells the client while that is possible, and lets go of the runtime. */
  giveUp(rejection: Rejection): void {
    const abortable = abortableOf(this.#state)
    this.fail(rejection)
    abortable?.abort(new Error(rejection.message))
  }

  /** The same, and the connection serves no other request. */
  giveUpAndClose(rejection: Rejection): void {
    if (this.isOver) return
    this.#options.client.neverReuse()
    this.giveUp(rejection)
  }

  /** @param hasSlot false: the stream has ended already */
  #slotDecided(hasSlot: boolean): void {
    const state = this.#state
    if (state.phase !== 'awaiting-slot') return
    this.#state = slotDecided(state)
    this.#send(state.status, state.head, state.source, hasSlot)
    for (const chunk of state.chunks) this.write(chunk)
    if (hasSlot) this.readerReady()
  }

  #slotRejected(rejection: Rejection): void {
    if (this.#state.phase !== 'awaiting-slot') return
    this.#state = slotDecided(this.#state)
    this.giveUp(rejection)
  }

  /** Counts the request: all that is counted by status is known, and nothing has ended yet. */
  #send(status: number, head: ResponseHead, source: ResponseSource, hasSlot: boolean): void {
    const { client, account, gate } = this.#options
    if (client.isLast) head.headers.push('connection', 'close')
    gate.addHeaders(head.headers)
    if (!client.writeHead(status, head.headers)) {
      if (hasSlot) gate.closed()
      this.reject(rejections.badGateway)
      source.abort(new Error('the response has a head that cannot be passed on'))
      return
    }
    account.count(status, !head.isRejected)
    const hasBody = !client.isHead && status !== 204 && status !== 304
    const closeStream = hasSlot ? this.#openStream() : undefined
    this.#state = send(this.#state, source, hasBody ? head.length : undefined, closeStream)
    if (hasSlot) client.flushHead()
  }

  /** @returns closes it */
  #openStream(): () => void {
    const { account, gate, live, tenantId } = this.#options
    account.streamOpened()
    const notLive = live.add(tenantId, () => this.giveUp(rejections.badGateway))
    return () => {
      gate.closed()
      notLive()
      account.streamClosed()
    }
  }

  /** @param hasLength whether the client knows the body's length */
  #conclude(last: Buffer | undefined, hasLength: boolean): void {
    const { client, account } = this.#options
    // Lets go of the request first: whoever reads on must be the only one.
    this.#letGo()
    // No response ends before it is counted for good.
    account.kept(() => {
      this.#options.onOver(this)
      client.end(last, hasLength)
    })
  }

  #finish(): void {
    this.#letGo()
    this.#options.onOver(this)
  }

  #letGo(): void {
    const state = this.#state
    this.#state = over
    this.#options.account.ended()
    if (state.phase === 'awaiting-slot') state.leave()
    else if (state.phase === 'sending') state.closeStream?.()
    this.#options.client.release()
  }
}
