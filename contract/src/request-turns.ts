// Turns for the requests of tenants. Clients can send thousands of requests at the same moment, and the event loop would begin
// all of them before it continues with anything else. In one round of the loop, a tenant therefore begins only so many, so that
// the requests of others pass between them.
import { NextRound } from './next-round.ts'

/** Requests of a tenant that begin in one round. To begin one takes a tenth of a millisecond. */
const requestsPerRound = 16

interface Turn {
  begun: number
  /** The requests that wait for a later round, in the order of their arrival. */
  readonly waiting: Set<() => boolean>
}

/** The turns of all tenants of a process. */
export class RequestTurns {
  /** The tenants with requests that have begun in this round, or that wait. */
  readonly #turns = new Map<string, Turn>()
  readonly #round = new NextRound(() => this.#nextRound())
  /** The number of requests of all tenants that wait. */
  waiting = 0

  /** Whether a request of the tenant may begin now. It then counts. Otherwise the caller calls `wait`. */
  begins(tenantId: string): boolean {
    let turn = this.#turns.get(tenantId)
    if (turn === undefined) {
      turn = { begun: 0, waiting: new Set() }
      this.#turns.set(tenantId, turn)
      this.#round.schedule()
    }
    if (turn.begun >= requestsPerRound || turn.waiting.size > 0) return false
    turn.begun++
    return true
  }

  /**
   * Calls `begin` once, when it is the request's turn.
   * @param begin begins the request, and returns false if it has ended in the meantime and does not count
   */
  wait(tenantId: string, begin: () => boolean): void {
    const turn = this.#turns.get(tenantId)
    if (turn === undefined) throw new Error('A request can wait for its turn only in the round in which it arrived.')
    turn.waiting.add(begin)
    this.waiting++
  }

  /** Returns the number of the tenant's requests that wait. */
  waitingOf(tenantId: string): number {
    return this.#turns.get(tenantId)?.waiting.size ?? 0
  }

  #nextRound(): void {
    for (const [tenantId, turn] of this.#turns) {
      turn.begun = 0
      for (const begin of turn.waiting) {
        if (turn.begun === requestsPerRound) break
        turn.waiting.delete(begin)
        this.waiting--
        if (begin()) turn.begun++
      }
      if (turn.begun === 0 && turn.waiting.size === 0) this.#turns.delete(tenantId)
    }
    if (this.#turns.size > 0) this.#round.schedule()
  }
}
