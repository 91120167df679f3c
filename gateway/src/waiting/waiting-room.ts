// Where requests and SQL logins wait for their paused tenant: in order, bounded, each until its deadline, while the
// control plane is asked to wake the tenant.
import { pause, type Route } from '@tenantry/contract'
import { rejectionOfPhase, rejections, type Rejection } from '../errors.ts'
import type { Limits } from '../limits.ts'
import { WakeRejected, type Wake } from './wake.ts'

/** Who waits. One of the two is called, once, unless it leaves before. */
export interface WaitingRequest {
  go(route: Route): void
  reject(rejection: Rejection): void
}

interface WaitingRoomOptions {
  limits: Limits
  wake: Wake
  onError: (error: Error) => void
}

/** The requests of one tenant in the order they came, with their deadlines. */
interface Room {
  requests: Map<WaitingRequest, NodeJS.Timeout>
  waking: AbortController
}

/** Milliseconds: asked again after a failure, doubled each time, and while a wake that was accepted shows no effect. */
const firstRetry = 100
const slowestRetry = 2_000

export class WaitingRoom {
  readonly #options: WaitingRoomOptions
  readonly #rooms = new Map<string, Room>()
  #waiting = 0
  #closed = false

  constructor(options: WaitingRoomOptions) {
    this.#options = options
  }

  /** @returns to be called by a guest who leaves by itself; harmless afterwards */
  wait(tenantId: string, request: WaitingRequest): () => void {
    const { limits } = this.#options
    const seated = this.#rooms.get(tenantId)?.requests.size ?? 0
    if (this.#closed || this.#waiting >= limits.waiting || seated >= limits.waitingPerTenant) {
      request.reject(this.#closed ? rejections.tenantWaking : rejections.tooManyWaiting)
      return () => undefined
    }
    const room = this.#rooms.get(tenantId) ?? this.#open(tenantId)
    const leave = () => this.#leave(tenantId, room, request)
    const deadline = setTimeout(() => {
      leave()
      request.reject(rejections.tenantWaking)
    }, limits.wakeTimeout)
    room.requests.set(request, deadline)
    this.#waiting++
    return leave
  }

  /** The route of a tenant is another now, or gone. */
  changed(tenantId: string, route: Route | undefined): void {
    if (route === undefined) {
      this.#rejectAll(tenantId, rejections.tenantNotFound)
      return
    }
    const rejection = rejectionOfPhase(route)
    if (rejection === undefined) for (const request of this.#empty(tenantId)) request.go(route)
    else if (rejection !== rejections.tenantWaking && rejection !== rejections.tenantNotReady)
      this.#rejectAll(tenantId, rejection)
  }

  /** Nobody waits any longer, and nobody will. */
  close(): void {
    this.#closed = true
    for (const tenantId of [...this.#rooms.keys()]) this.#rejectAll(tenantId, rejections.tenantWaking)
  }

  #open(tenantId: string): Room {
    const room = { requests: new Map<WaitingRequest, NodeJS.Timeout>(), waking: new AbortController() }
    this.#rooms.set(tenantId, room)
    void this.#wake(tenantId, room.waking.signal)
    return room
  }

  /** One for each tenant with requests, as long as it has any. Never throws. */
  async #wake(tenantId: string, signal: AbortSignal): Promise<void> {
    const isOver = () => signal.aborted
    for (let delay = firstRetry; !isOver(); delay = Math.min(delay * 2, slowestRetry)) {
      try {
        await this.#options.wake(tenantId, signal)
        delay = slowestRetry
      } catch (cause) {
        if (isOver()) return
        this.#options.onError(new Error(`tenant ${tenantId} was not woken`, { cause }))
        if (cause instanceof WakeRejected) {
          this.#rejectAll(tenantId, rejections.wakeRejected)
          return
        }
      }
      await pause(delay, signal)
    }
  }

  #rejectAll(tenantId: string, rejection: Rejection): void {
    for (const request of this.#empty(tenantId)) request.reject(rejection)
  }

  /** Takes all requests out; leaving afterwards does nothing. */
  #empty(tenantId: string): WaitingRequest[] {
    const room = this.#rooms.get(tenantId)
    if (room === undefined) return []
    const requests = [...room.requests.keys()]
    for (const request of requests) this.#leave(tenantId, room, request)
    return requests
  }

  #leave(tenantId: string, room: Room, request: WaitingRequest): void {
    clearTimeout(room.requests.get(request))
    if (!room.requests.delete(request)) return
    this.#waiting--
    if (room.requests.size > 0) return
    room.waking.abort()
    this.#rooms.delete(tenantId)
  }
}
