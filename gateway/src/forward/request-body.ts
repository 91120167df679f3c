// A client's body on its way to a runtime. It separates the two streams, so that the end of one does not end the other.
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { ByteTurns } from '@tenantry/contract'
import { rejections, type Rejection } from '../errors.ts'
import { ArrivedBytes } from './arrived-bytes.ts'
import type { BodyBudget, BodyShare } from './body-budget.ts'
import type { PassedBytes } from './passed-bytes.ts'

interface RequestBodyOptions {
  /** The maximum number of milliseconds between two chunks. */
  idleTimeout: number
  /** The minimum rate in bytes per second, and the milliseconds by which a body may be behind it. */
  minRate: number
  maxLag: number
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  passed: PassedBytes
  turns: ByteTurns
  tenantId: string
  budget: BodyBudget
  /** The body's part of the budget. */
  share: BodyShare
  /** Called when the client sends nothing although the gateway would read it. */
  onIdle: () => void
  /** Called when the body breaks a rule, as one that is too slow does. */
  onRejected: (rejection: Rejection) => void
}

export class RequestBody extends Readable {
  readonly #request: IncomingMessage
  readonly #options: RequestBodyOptions
  readonly #arrived: ArrivedBytes
  #timer: NodeJS.Timeout | undefined
  #leaveTurn = () => {}
  /** Whether the gateway waits for the client. */
  #waiting = false
  #waitsSince = 0
  /** The milliseconds by which the body is behind the minimum rate. */
  #lag = 0

  constructor(request: IncomingMessage, options: RequestBodyOptions) {
    super({ highWaterMark: 64 * 1024 })
    this.#request = request
    this.#options = options
    this.#arrived = new ArrivedBytes(request.socket)
    // The reader ends this body with an error when the runtime fails, which the response's side handles by itself.
    this.on('error', () => undefined)
  }

  /** Whether any of the body may have been read, so that the request cannot be sent a second time. */
  get isStarted(): boolean {
    return this.#timer !== undefined
  }

  override _read(): void {
    if (this.#timer === undefined) this.#begin()
    this.#readMore()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#detach()
    this.#options.share.close()
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

  /**
   * Reads on as soon as the budget has room and the tenant has its turn. A body that holds nothing always has room for a
   * chunk that is read at once.
   */
  readonly #readMore = (): void => {
    if (this.destroyed || this.#waiting) return
    const { share, budget, turns, tenantId, elapsed } = this.#options
    share.hold(this.readableLength)
    if (!share.hasRoom && (this.readableLength > 0 || this.isPaused())) {
      budget.wait(this.#readMore)
      return
    }
    if (turns.isOver(tenantId)) {
      this.#leaveTurn = turns.wait(tenantId, this.#readMore)
      return
    }
    this.#waiting = true
    this.#waitsSince = elapsed()
    this.#timer?.refresh()
    this.#request.resume()
  }

  readonly #onData = (chunk: Buffer): void => {
    const { passed, share, turns, tenantId } = this.#options
    this.#timer?.refresh()
    passed.add(chunk.length)
    turns.add(tenantId, this.#arrived.chunk(chunk.length).due)
    if (this.#arrived.isMostlyFraming) {
      this.#options.onRejected(rejections.chunksTooSmall)
      return
    }
    if (this.#isSlow(chunk.length)) {
      this.#options.budget.slow++
      this.#options.onRejected(rejections.bodyTooSlow)
      return
    }
    const wantsMore = this.push(chunk)
    share.hold(this.readableLength)
    const isOver = turns.isOver(tenantId)
    if (wantsMore && share.hasRoom && !isOver) return
    this.#waiting = false
    this.#request.pause()
    if (isOver && wantsMore) this.#leaveTurn = turns.wait(tenantId, this.#readMore)
  }

  /** Adds the time since the last chunk to the lag, and deducts the time that the chunk may take. */
  #isSlow(bytes: number): boolean {
    const { minRate, maxLag, elapsed } = this.#options
    if (this.#waiting) {
      const now = elapsed()
      this.#lag += now - this.#waitsSince
      this.#waitsSince = now
    }
    this.#lag = Math.max(0, this.#lag - (bytes * 1_000) / minRate)
    return this.#lag > maxLag
  }

  readonly #onEnd = (): void => {
    this.#detach()
    this.push(null)
  }

  #detach(): void {
    clearTimeout(this.#timer)
    this.#leaveTurn()
    this.#request.off('data', this.#onData)
    this.#request.off('end', this.#onEnd)
    this.#request.pause()
  }
}
