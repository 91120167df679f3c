// The memory of results: rows that arrive from a database, and responses that clients have not received yet. Small results
// are not counted, because connections and requests in progress bound their number.
import { ByteBudget, type Reservation, type Share } from './byte-budget.ts'
import { noRoom } from './no-room.ts'

/** The bytes of each result that are not counted. */
export const uncountedBytes = 64 * 1024
/** The memory that a further byte needs while it arrives: as received, as text, and as sent. */
const memoryPerByte = 4
/** The memory that a further byte of a response needs: as text, and as sent. */
const memoryPerSentByte = 2
/** The memory that is reserved at a time, so that not every row reserves some. */
const stepBytes = uncountedBytes * memoryPerByte
/** The maximum milliseconds for which a result waits for room. */
export const maxWaitMilliseconds = 5_000
/** The part of a tenant's share that its anonymous callers may have, so that they do not use up that of its users. */
const anonymousPart = 1 / 2

/** The tenant whose results they are, and whether only anonymous callers have requested them. */
export interface ResultOwner {
  tenantId: string
  isAnonymous: boolean
}

export class Results {
  readonly budget: ByteBudget
  readonly #tenantBytes: number

  /** Creates the budget. A tenant may have the given part of it. */
  constructor(maxBytes: number, tenantPart: number) {
    this.budget = new ByteBudget(maxBytes)
    this.#tenantBytes = maxBytes * tenantPart
  }

  /** Opens the memory of a result that arrives. The caller releases it. */
  open(owner: ResultOwner): ArrivingResult {
    return new ArrivingResult(this.budget.open(this.#sharesOf(owner)))
  }

  /**
   * Holds the memory of a response until the returned function is called. The response is in memory already, so there is
   * always room.
   * @returns undefined for a small response
   */
  holdResponse(owner: ResultOwner, bytes: number): (() => void) | undefined {
    if (bytes <= uncountedBytes) return undefined
    const reservation = this.budget.open(this.#sharesOf(owner))
    reservation.force((bytes - uncountedBytes) * memoryPerSentByte)
    return () => reservation.release()
  }

  /**
   * Checks the tenant's share before work whose result is known only at its end.
   * @throws RuntimeError TOO_MANY_BYTES, SERVICE_BUSY when it is used up
   */
  checkRoom(owner: ResultOwner): void {
    const full = this.budget.fullShare(this.#sharesOf(owner))
    if (full === undefined) return
    this.budget.reject(full)
    throw noRoom('results', full)
  }

  #sharesOf({ tenantId, isAnonymous }: ResultOwner): Share[] {
    const tenant = { name: 'tenant', key: tenantId, maxBytes: this.#tenantBytes }
    if (!isAnonymous) return [tenant]
    return [{ name: 'anonymous', key: tenantId, maxBytes: this.#tenantBytes * anonymousPart }, tenant]
  }
}

/** A result that arrives in parts. */
export class ArrivingResult {
  readonly #reservation: Reservation
  #bytes = 0
  #isWaiting = false

  constructor(reservation: Reservation) {
    this.#reservation = reservation
  }

  /**
   * Adds a part, before it is buffered.
   * @returns undefined when there is room; otherwise a promise that resolves when there is
   * @throws RuntimeError TOO_MANY_BYTES, SERVICE_BUSY (as a rejection) when there is none in time
   */
  add(bytes: number): Promise<void> | undefined {
    this.#bytes += bytes
    const missing = this.#missing
    if (missing <= 0 || this.#isWaiting) return undefined
    const waiting = this.#reservation.takeOrWait(Math.max(missing, stepBytes), maxWaitMilliseconds)
    if (waiting === undefined) return undefined
    this.#isWaiting = true
    return waiting.then((full) => {
      this.#isWaiting = false
      if (full !== undefined) throw noRoom('results', full)
    })
  }

  /**
   * Replaces the parts that are in memory by one of this size. What was reserved stays reserved, for the next parts.
   * @throws RuntimeError TOO_MANY_BYTES, SERVICE_BUSY when there is no room
   */
  replace(bytes: number): void {
    this.#bytes = bytes
    const missing = this.#missing
    if (missing <= 0) return
    const full = this.#reservation.take(Math.max(missing, stepBytes))
    if (full !== undefined) throw noRoom('results', full)
  }

  /** Releases all memory. Idempotent. */
  release(): void {
    this.#reservation.release()
  }

  get #missing(): number {
    return (this.#bytes - uncountedBytes) * memoryPerByte - this.#reservation.bytes
  }
}
