// Where requests and SQL logins wait for their paused tenant: in order, bounded, each until its deadline, while the
// control plane is asked to wake the tenant.
import { pause, type Route } from '@tenantry/contract'
import { refusalOfPhase, refusals, type Refusal } from '../errors.ts'
import type { Limits } from '../limits.ts'
import { WakeRefused, type Wake } from './wake.ts'

/** Who waits. One of the two is called, once, unless it leaves before. */
export interface Guest {
  go(route: Route): void
  refuse(refusal: Refusal): void
}

interface WaitingRoomOptions {
  limits: Limits
  wake: Wake
  onProblem: (problem: Error) => void
}

/** The guests of one tenant in the order they came, with their deadlines. */
interface Room {
  guests: Map<Guest, NodeJS.Timeout>
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
  wait(tenantId: string, guest: Guest): () => void {
    const { limits } = this.#options
    const seated = this.#rooms.get(tenantId)?.guests.size ?? 0
    if (this.#closed || this.#waiting >= limits.waiting || seated >= limits.waitingPerTenant) {
      guest.refuse(this.#closed ? refusals.tenantWaking : refusals.tooManyWaiting)
      return () => undefined
    }
    const room = this.#rooms.get(tenantId) ?? this.#open(tenantId)
    const leave = () => this.#leave(tenantId, room, guest)
    const deadline = setTimeout(() => {
      leave()
      guest.refuse(refusals.tenantWaking)
    }, limits.wakeTimeout)
    room.guests.set(guest, deadline)
    this.#waiting++
    return leave
  }

  /** The route of a tenant is another now, or gone. */
  changed(tenantId: string, route: Route | undefined): void {
    if (route === undefined) {
      this.#refuseAll(tenantId, refusals.tenantNotFound)
      return
    }
    const refusal = refusalOfPhase(route)
    if (refusal === undefined) for (const guest of this.#empty(tenantId)) guest.go(route)
    else if (refusal !== refusals.tenantWaking && refusal !== refusals.tenantNotReady)
      this.#refuseAll(tenantId, refusal)
  }

  /** Nobody waits any longer, and nobody will. */
  close(): void {
    this.#closed = true
    for (const tenantId of [...this.#rooms.keys()]) this.#refuseAll(tenantId, refusals.tenantWaking)
  }

  #open(tenantId: string): Room {
    const room = { guests: new Map<Guest, NodeJS.Timeout>(), waking: new AbortController() }
    this.#rooms.set(tenantId, room)
    void this.#wake(tenantId, room.waking.signal)
    return room
  }

  /** One for each tenant with guests, as long as it has any. Never throws. */
  async #wake(tenantId: string, signal: AbortSignal): Promise<void> {
    const isOver = () => signal.aborted
    for (let delay = firstRetry; !isOver(); delay = Math.min(delay * 2, slowestRetry)) {
      try {
        await this.#options.wake(tenantId, signal)
        delay = slowestRetry
      } catch (cause) {
        if (isOver()) return
        this.#options.onProblem(new Error(`tenant ${tenantId} was not woken`, { cause }))
        if (cause instanceof WakeRefused) {
          this.#refuseAll(tenantId, refusals.wakeRefused)
          return
        }
      }
      await pause(delay, signal)
    }
  }

  #refuseAll(tenantId: string, refusal: Refusal): void {
    for (const guest of this.#empty(tenantId)) guest.refuse(refusal)
  }

  /** Takes all guests out; leaving afterwards does nothing. */
  #empty(tenantId: string): Guest[] {
    const room = this.#rooms.get(tenantId)
    if (room === undefined) return []
    const guests = [...room.guests.keys()]
    for (const guest of guests) this.#leave(tenantId, room, guest)
    return guests
  }

  #leave(tenantId: string, room: Room, guest: Guest): void {
    clearTimeout(room.guests.get(guest))
    if (!room.guests.delete(guest)) return
    this.#waiting--
    if (room.guests.size > 0) return
    room.waking.abort()
    this.#rooms.delete(tenantId)
  }
}
