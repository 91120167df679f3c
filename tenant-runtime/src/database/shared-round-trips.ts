// One trip for all who wait for one: what comes while a trip is under way goes into the next, as one transaction.
import { RuntimeError } from '../errors.ts'
import { RoundTripError } from './round-trip-error.ts'

/** In one transaction. */
const maxTogether = 64
/** More are refused at once. */
const maxWaiting = 1_024
/** So long a trip waits for half of those that are on their way. */
const gatherMilliseconds = 2

interface Waiting<Job, Outcome> {
  job: Job
  resolve: (outcome: Outcome) => void
  reject: (error: unknown) => void
}

export class SharedRoundTrips<Job, Outcome> {
  readonly #roundTrip: (jobs: Job[]) => Promise<readonly (Outcome | undefined)[]>
  readonly #onTheirWay: () => number
  #queue: Waiting<Job, Outcome>[] = []
  #draining = false
  #arrived: (() => void) | undefined

  /**
   * `trip` is one transaction; its outcomes are in the order of the jobs. `onTheirWay` returns how many jobs will come
   * soon, those that wait here included.
   */
  constructor(
    roundTrip: (jobs: Job[]) => Promise<readonly (Outcome | undefined)[]>,
    onTheirWay: () => number = () => 0,
  ) {
    this.#roundTrip = roundTrip
    this.#onTheirWay = onTheirWay
  }

  /** @throws what `trip` throws for this job; of others in the same transaction nothing is seen */
  run(job: Job): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      if (this.#queue.length >= maxWaiting) {
        reject(new RuntimeError('DATABASE_BUSY', 'too many requests wait for the database'))
        return
      }
      this.#queue.push({ job, resolve, reject })
      this.#arrived?.()
      if (!this.#draining) void this.#drain()
    })
  }

  async #drain(): Promise<void> {
    this.#draining = true
    while (this.#queue.length > 0) {
      // Whoever's request has arrived by now comes along.
      await new Promise(setImmediate)
      if (!this.#isWorthwhile()) await this.#gather()
      await this.#together(this.#queue.splice(0, maxTogether))
    }
    this.#draining = false
  }

  #isWorthwhile(): boolean {
    return this.#queue.length >= Math.min(maxTogether, this.#onTheirWay() / 2)
  }

  #gather(): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        this.#arrived = undefined
        resolve()
      }
      const timer = setTimeout(done, gatherMilliseconds)
      this.#arrived = () => {
        if (this.#isWorthwhile()) done()
      }
    })
  }

  /** When Postgres refuses one, nothing of the transaction has happened: the halves are tried by themselves. */
  async #together(group: Waiting<Job, Outcome>[]): Promise<void> {
    try {
      const outcomes = await this.#roundTrip(group.map(({ job }) => job))
      for (const [n, { resolve, reject }] of group.entries()) {
        const outcome = outcomes[n]
        if (outcome === undefined) reject(new Error('a job of the group has no outcome'))
        else resolve(outcome)
      }
    } catch (error) {
      if (group.length === 1 || !isRejected(error)) {
        for (const { reject } of group) reject(error)
        return
      }
      const half = group.length >> 1
      await this.#together(group.slice(0, half))
      await this.#together(group.slice(half))
    }
  }
}

/** True when nothing of the transaction has happened, and nothing will: it was refused, or never begun. */
export function isDecided(error: unknown): boolean {
  return isRejected(error) || (error instanceof RuntimeError && error.code === 'DATABASE_BUSY')
}

/** By Postgres itself: said by the error, or by the cause of what it was made. */
function isRejected(error: unknown): boolean {
  const reported = error instanceof RoundTripError ? error : error instanceof Error ? error.cause : undefined
  return reported instanceof RoundTripError && reported.reusable
}
