// The queue of requests and SQL logins for paused tenants: in order, bounded, each until its deadline, while the control
// plane is requested to wake the tenant.
import { pause, type Route } from '@tenantry/contract'
import { rejectionOfPhase, rejections, type Rejection } from '../errors.ts'
import type { Limits } from '../limits.ts'
import { WakeRejectedError, type Wake } from './wake.ts'

/** A waiting request or login. One of the two functions is called, once, unless it leaves before. */
export interface WaitingRequest {
  go(route: Route): void
  reject(rejection: Rejection): void
}

interface WaitingRoomOptions {
  limits: Limits
  wake: Wake
  onError: (error: Error) => void
}

/** The requests of one tenant in the order of their arrival, with their deadlines. */
interface Room {
  requests: Map<WaitingRequest, NodeJS.Timeout>
  waking: AbortController
}

/**
 * Milliseconds before a failed wake is retried, doubled each time up to `maxRetryMs`, which also applies while a wake has
 * no effect.
 */
const firstRetryMs = 100
const maxRetryMs = 2_000

export class WaitingRoom {
  readonly #options: WaitingRoomOptions
  readonly #rooms = new Map<string, Room>()
  #waiting = 0
  /** The number of requests that were rejected because too many waited. */
  rejected = 0
  #closed = false

  constructor(options: WaitingRoomOptions) {
    this.#options = options
  }

  /** The number of waiting requests. */
  get size(): number {
    return this.#waiting
  }

  /**
   * Lets a request wait.
   * @returns a function that the request calls when it leaves by itself; harmless afterwards
   */
  wait(tenantId: string, request: WaitingRequest): () => void {
    const { limits } = this.#options
    const waitingForTenant = this.#rooms.get(tenantId)?.requests.size ?? 0
    if (this.#closed || this.#waiting >= limits.waiting || waitingForTenant >= limits.waitingPerTenant) {
      if (!this.#closed) this.rejected++
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

  /** Applies a change of a tenant's route: admits or rejects the waiting requests. */
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

  /** Rejects all waiting requests, and every later one. */
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

  /** Wakes one tenant, as long as it has waiting requests. Never throws. */
  async #wake(tenantId: string, signal: AbortSignal): Promise<void> {
    const isOver = () => signal.aborted
    for (let delay = firstRetryMs; !isOver(); delay = Math.min(delay * 2, maxRetryMs)) {
      try {
        await this.#options.wake(tenantId, signal)
        delay = maxRetryMs
      } catch (cause) {
        if (isOver()) return
        this.#options.onError(new Error(`The tenant ${tenantId} could not be woken.`, { cause }))
        if (cause instanceof WakeRejectedError) {
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

  /** Removes all requests. Leaving afterwards has no effect. */
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
