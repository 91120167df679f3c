// The client's side of one forwarded request: head, body under backpressure, refusal, and the count of it all.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { refusals, type Refusal } from '../errors.ts'
import { beginRefusal } from '../http/refusal.ts'
import type { Limits } from '../limits.ts'
import type { TenantMeter } from '../meter/meter.ts'
import type { Admission, TenantGate } from '../quota/quota.ts'
import type { Group } from '../resolve/group.ts'
import { endBeforeRequest } from './leftover.ts'
import type { LiveConnections } from './live-connections.ts'
import type { PassedBytes } from './passed-bytes.ts'
import { responseHead, type AnsweredHeaders, type ResponseHead } from './response-head.ts'

/** The runtime's side: undici's controller, or the like of it. */
export interface Source {
  pause(): void
  resume(): void
  abort(reason: Error): void
}

interface AnswerOptions {
  request: IncomingMessage
  response: ServerResponse
  requestId: string
  hasBody: boolean
  tenantId: string
  group: Group
  meter: TenantMeter
  gate: TenantGate
  live: LiveConnections
  passed: PassedBytes
  limits: Limits
  /** Milliseconds, monotonic. */
  elapsed: () => number
  /** Whether the gateway is stopping: connections end with their current answer. */
  isClosing: () => boolean
  /** Told once, when nothing more happens on either side. */
  onOver: (answer: Answer) => void
}

/** What an HTTP log elsewhere calls 499: the client left before there was an answer. */
const clientLeft = 499

export class Answer {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly #options: AnswerOptions
  /** Set by whoever asks the runtime. */
  source: Source | undefined
  /** The client's body, when it is being sent. */
  body: Readable | undefined
  /** Whether the connection may serve another request. */
  keepAlive = true
  /** False while the request waits for its tenant's quota: a client that leaves then was never let in. */
  admitted = true
  /** What the tenant's quota has let it in by. */
  admission: Admission | undefined
  /** Whether any of the request may have reached a runtime: what came of it there is the tenant's to pay. */
  forwarded = false
  readonly #since: number
  #begun = false
  /** Whether its bytes are egress: those of a rejected request are not. */
  #isBillable = true
  #over = false
  /** Of an event stream: takes it off the live connections. */
  #notLive: (() => void) | undefined
  /** Whether it has a place among the tenant's connections that stay. */
  #stays = false
  /** An event stream that waits for its place, with what has come of it. */
  #held: { status: number; head: ResponseHead; leave: () => void; pieces: Buffer[] } | undefined
  /** Bytes of the body still to come, when the runtime said how many. */
  #left: number | undefined
  #readerTimer: NodeJS.Timeout | undefined
  #listensToDrain = false

  constructor(options: AnswerOptions) {
    this.#options = options
    this.request = options.request
    this.response = options.response
    options.meter.began()
    this.#since = options.elapsed()
    // A client that leaves is noticed on its connection; writing on meanwhile must not end the process.
    this.response.on('error', ignore)
  }

  /** Whether the runtime's head has come: nobody asks once more. */
  get begun(): boolean {
    return this.#begun || this.#held !== undefined
  }

  get over(): boolean {
    return this.#over
  }

  /** Passes on an interim answer (1xx) to a client that can read one. */
  inform(status: number, headers: AnsweredHeaders): void {
    if (this.#over || this.#begun || this.request.httpVersion !== '1.1' || status === 100 || status === 101) return
    const interim: Record<string, string | string[]> = {}
    for (const [name, value] of Object.entries(headers)) if (value !== undefined) interim[name] = value
    this.response.writeInformation(status, interim)
  }

  /** The runtime's head. An event stream waits here for its place. */
  begin(status: number, answered: AnsweredHeaders): void {
    if (this.#over) return
    const { requestId, gate } = this.#options
    const head = responseHead(answered, requestId, status)
    if (!head.isEventStream) {
      this.#send(status, head)
      return
    }
    const place = gate.open(() => ({ go: () => this.#letGoOn(true), refuse: (refusal) => this.#turnAway(refusal) }))
    if (place === undefined) {
      this.#stays = true
      this.#send(status, head)
    } else if (typeof place === 'function') {
      this.#held = { status, head, leave: place, pieces: [] }
      this.source?.pause()
    } else this.#turnAway(place)
  }

  #turnAway(refusal: Refusal): void {
    this.#held = undefined
    this.refuse(refusal)
    this.source?.abort(new Error(refusal.message))
  }

  /** @param stays false: the stream has ended already, and needs no place */
  #letGoOn(stays: boolean): void {
    const held = this.#held
    if (held === undefined) return
    this.#held = undefined
    this.#stays = stays
    this.#send(held.status, held.head)
    for (const piece of held.pieces) this.write(piece)
    if (stays) this.source?.resume()
  }

  /** Counts the request: all that is counted by status is known, and nothing has ended yet. */
  #send(status: number, head: ResponseHead): void {
    const { meter, live, tenantId } = this.#options
    if (!this.keepAlive || this.#options.isClosing()) head.headers.push('connection', 'close')
    this.#options.gate.addHeaders(head.headers)
    try {
      this.response.writeHead(status, head.headers)
    } catch {
      this.refuse(refusals.badGateway)
      this.source?.abort(new Error('the answer has a head that cannot be passed on'))
      return
    }
    this.#begun = true
    this.#count(status, !head.isRejected)
    const hasBody = this.request.method !== 'HEAD' && status !== 204 && status !== 304
    if (hasBody) this.#left = head.length
    if (!this.#stays) return
    meter.opened()
    this.#notLive = live.add(tenantId, () => this.giveUp(refusals.badGateway))
    this.response.flushHeaders()
  }

  write(chunk: Buffer): void {
    if (this.#over) return
    if (this.#held !== undefined) {
      this.#held.pieces.push(chunk)
      return
    }
    const { meter, group, passed } = this.#options
    if (this.#isBillable) meter.egress(group, chunk.length)
    passed.add(chunk.length)
    if (this.#left !== undefined) {
      this.#left -= chunk.length
      if (this.#left === 0) {
        // The last piece and the end in one write.
        this.#conclude(chunk)
        return
      }
    }
    if (!this.response.write(chunk)) this.#waitForReader()
  }

  end(): void {
    if (this.#over) return
    this.#held?.leave()
    this.#letGoOn(false)
    this.#conclude(undefined)
  }

  /** The gateway answers by itself. Only before `begin`. */
  refuse(refusal: Refusal): void {
    if (this.#over) return
    const { requestId, group, meter } = this.#options
    this.#begun = true
    const body = beginRefusal(this.response, refusal, requestId, !this.keepAlive || this.#options.isClosing())
    if (refusal.isQuota === true) {
      meter.refused(group)
      this.admission?.settle(false)
    } else {
      this.#count(refusal.status, this.forwarded)
      if (this.#isBillable && this.request.method !== 'HEAD') meter.egress(group, body.length)
    }
    this.#left = 0
    this.#conclude(body)
  }

  /** The runtime's side failed: said so while that is possible; else the connection is cut, so that nobody takes a part for the whole. */
  fail(refusal: Refusal): void {
    if (this.#over) return
    if (!this.#begun) {
      this.refuse(refusal)
      return
    }
    this.#finish()
    this.response.destroy()
  }

  /** The gateway gives up on the client: says why while that is possible, and lets go of the runtime. */
  giveUp(refusal: Refusal): void {
    const { source } = this
    this.fail(refusal)
    source?.abort(new Error(refusal.message))
  }

  /** The client's connection is closed. */
  clientGone(): void {
    if (this.#over) return
    const { meter, group } = this.#options
    if (!this.admitted) meter.refused(group)
    else if (!this.#begun) this.#count(clientLeft, this.forwarded)
    const { source } = this
    this.#finish()
    source?.abort(new Error('the client left'))
  }

  /** The connection goes on in another protocol; nothing more comes through here. */
  switched(): void {
    if (this.#over) return
    this.#begun = true
    this.#count(101, true)
    this.#finish()
  }

  /** Counts the request, and tells the tenant's quota. Once. */
  #count(status: number, isBillable: boolean): void {
    const { meter, group, elapsed } = this.#options
    const { method = '' } = this.request
    this.#isBillable = isBillable
    if (isBillable) meter.request(group, method, status, elapsed() - this.#since)
    else meter.rejected(group, method, status)
    this.admission?.settle(isBillable)
  }

  #waitForReader(): void {
    this.source?.pause()
    this.#readerTimer = setTimeout(() => this.giveUp(refusals.badGateway), this.#options.limits.readerIdleTimeout)
    if (this.#listensToDrain) return
    this.#listensToDrain = true
    this.response.on('drain', () => {
      clearTimeout(this.#readerTimer)
      this.source?.resume()
    })
  }

  #conclude(last: Buffer | undefined): void {
    const { request, response } = this
    const { hasBody, limits, meter } = this.#options
    // Lets go of the request first: whoever reads on must be the only one.
    this.#letGo()
    // No answer ends before it is counted for good.
    meter.kept(() => {
      this.#options.onOver(this)
      const isArriving = hasBody && this.keepAlive && !request.complete && !request.destroyed
      if (isArriving) endBeforeRequest(response, last, this.#left !== undefined, limits)
      else response.end(last)
    })
  }

  #finish(): void {
    this.#letGo()
    this.#options.onOver(this)
  }

  #letGo(): void {
    this.#over = true
    this.#options.meter.ended()
    clearTimeout(this.#readerTimer)
    this.#held?.leave()
    this.#held = undefined
    if (this.#stays) this.#options.gate.closed()
    if (this.#notLive !== undefined) {
      this.#notLive()
      this.#options.meter.closed()
    }
    this.body?.destroy()
  }
}

function ignore(): void {}
