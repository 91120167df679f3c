// Turns for the bytes of bodies. The event loop reads up to megabytes of each connection before it continues with the next
// one. In one round of the loop, a tenant therefore passes only so many bytes, however many connections it has, so that its
// bodies do not delay the requests of others.
import { NextRound } from './next-round.ts'

/** Bytes that a tenant may pass in one round. At this size, a round takes less than a millisecond. */
const bytesPerTurn = 256 * 1024
/** Chunks of a turn: connections deliver at most 64 KiB at a time. */
const chunksPerTurn = bytesPerTurn / (64 * 1024)
/** Bytes of the smallest amount that is counted. Small bodies take no time that matters. */
const minCountedBytes = 16 * 1024
/** Bytes for which a chunk counts at least, because each takes time, whatever its size. */
const minChunkBytes = 4 * 1024

interface Turn {
  bytes: number
  /** The bodies that wait for a later turn, in the order in which they began to wait. */
  readonly waiting: Set<() => void>
}

/** The chunks of one body whose size its sender chooses, so that many small ones count as a large one does. */
export class BodyChunks {
  #bytes = 0

  /**
   * Adds a chunk.
   * @returns the bytes to add to the tenant's turn now: those of all chunks since the last ones, or 0 while they are few
   */
  add(bytes: number): number {
    this.#bytes += Math.max(bytes, minChunkBytes)
    if (this.#bytes < minCountedBytes) return 0
    const due = this.#bytes
    this.#bytes = 0
    return due
  }
}

/** The turns of all tenants of a process. */
export class ByteTurns {
  /** The tenants with bytes in this round, or with bodies that wait. */
  readonly #turns = new Map<string, Turn>()
  readonly #round: NextRound
  #isResuming = false

  /**
   * Creates the turns.
   * @param milliseconds the duration of a round; by default, it is one of the event loop
   */
  constructor(milliseconds = 0) {
    this.#round = new NextRound(() => this.#nextRound(), milliseconds)
  }

  /** Counts bytes that a tenant's body has received or sent. */
  add(tenantId: string, bytes: number): void {
    if (bytes < minCountedBytes) return
    this.#turnOf(tenantId).bytes += bytes
  }

  /**
   * Whether the tenant may pass no more in this round, or others of its bodies wait for their turn. The caller then pauses its
   * source, and calls `wait`.
   */
  isOver(tenantId: string): boolean {
    const turn = this.#turns.get(tenantId)
    if (turn === undefined) return false
    return turn.bytes >= bytesPerTurn || (turn.waiting.size > 0 && !this.#isResuming)
  }

  /**
   * Calls `resume` once, when it is the body's turn.
   * @returns a function that ends the wait of a body that has ended
   */
  wait(tenantId: string, resume: () => void): () => void {
    const { waiting } = this.#turnOf(tenantId)
    waiting.add(resume)
    return () => waiting.delete(resume)
  }

  #turnOf(tenantId: string): Turn {
    let turn = this.#turns.get(tenantId)
    if (turn === undefined) {
      turn = { bytes: 0, waiting: new Set() }
      this.#turns.set(tenantId, turn)
      this.#round.schedule()
    }
    return turn
  }

  #nextRound(): void {
    for (const [tenantId, turn] of this.#turns) {
      const next = [...turn.waiting.values().take(chunksPerTurn)]
      if (turn.bytes === 0 && next.length === 0) this.#turns.delete(tenantId)
      turn.bytes = 0
      this.#isResuming = true
      for (const resume of next) {
        turn.waiting.delete(resume)
        resume()
      }
      this.#isResuming = false
    }
    if (this.#turns.size > 0) this.#round.schedule()
  }
}
