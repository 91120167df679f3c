// Turns for large rows. A row of megabytes, such as a whole response, is decoded and sent as a whole, which takes some
// milliseconds for each. Their sum must not delay all other requests, so that only so many bytes of them begin to arrive in a
// round of the event loop, however many connections have one. Tenants take turns.
import { NextRound } from '@tenantry/contract'

/** The size of a row in bytes from which it waits for its turn. */
const largeBytes = 128 * 1024
/** The bytes of large rows for each round. A larger row uses the rounds after its own, too. */
const bytesPerRound = 512 * 1024

interface WaitingRow {
  bytes: number
  begin(): void
}

export class LargeRows {
  /** The rows that wait, by tenant. The tenant whose turn is next is the first. */
  readonly #waiting = new Map<string, WaitingRow[]>()
  /** The bytes that have begun, less those of the rounds since. While it is 0, no row waits. */
  #debt = 0
  readonly #round = new NextRound(() => this.#nextRound())

  /** Returns undefined if a row may arrive now, otherwise a promise that resolves when it may. */
  begin(tenantId: string, bytes: number): Promise<void> | undefined {
    if (bytes < largeBytes) return undefined
    this.#round.schedule()
    if (this.#debt === 0) {
      this.#debt += bytes
      return undefined
    }
    return new Promise((resolve) => {
      const rows = this.#waiting.get(tenantId)
      const row = { bytes, begin: resolve }
      if (rows === undefined) this.#waiting.set(tenantId, [row])
      else rows.push(row)
    })
  }

  #nextRound(): void {
    this.#debt = Math.max(0, this.#debt - bytesPerRound)
    if (this.#debt === 0) this.#beginNext()
    if (this.#debt > 0) this.#round.schedule()
  }

  #beginNext(): void {
    const [next] = this.#waiting
    if (next === undefined) return
    const [tenantId, rows] = next
    const row = rows.shift()
    this.#waiting.delete(tenantId)
    if (rows.length > 0) this.#waiting.set(tenantId, rows)
    if (row === undefined) return
    this.#debt += row.bytes
    row.begin()
  }
}
