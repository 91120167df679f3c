// Combines jobs into shared round trips: jobs that arrive during a round trip run together in the next, as one transaction.
import { RuntimeError } from '../errors.ts'
import { RoundTripError } from './round-trip-error.ts'

/** The maximum number of jobs in one transaction. */
const maxTogether = 64
/** The maximum number of waiting jobs. Further ones are rejected at once. */
const maxWaiting = 1_024
/** The time for which a round trip waits for half of the expected jobs. */
const gatherMilliseconds = 2

interface WaitingJob<Job, Outcome> {
  job: Job
  resolve: (outcome: Outcome) => void
  reject: (error: unknown) => void
}

export class SharedRoundTrips<Job, Outcome> {
  readonly #roundTrip: (jobs: Job[]) => Promise<readonly (Outcome | undefined)[]>
  readonly #countExpected: () => number
  #queue: WaitingJob<Job, Outcome>[] = []
  #draining = false
  #arrived: (() => void) | undefined

  /**
   * Creates an empty queue. `roundTrip` is one transaction; its outcomes are in the order of the jobs. `countExpected`
   * returns how many jobs will arrive soon, including those that wait here.
   */
  constructor(
    roundTrip: (jobs: Job[]) => Promise<readonly (Outcome | undefined)[]>,
    countExpected: () => number = () => 0,
  ) {
    this.#roundTrip = roundTrip
    this.#countExpected = countExpected
  }

  /**
   * Runs a job.
   * @throws the error of `roundTrip` for this job, without errors of other jobs in the same transaction
   */
  run(job: Job): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      if (this.#queue.length >= maxWaiting) {
        reject(new RuntimeError('DATABASE_BUSY', 'Too many requests wait for the database.'))
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
      // Jobs of requests that have arrived by now are included.
      await new Promise(setImmediate)
      if (!this.#isWorthwhile()) await this.#gather()
      await this.#runTogether(this.#queue.splice(0, maxTogether))
    }
    this.#draining = false
  }

  #isWorthwhile(): boolean {
    return this.#queue.length >= Math.min(maxTogether, this.#countExpected() / 2)
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

  /**
   * Runs jobs together. When Postgres rejects the transaction, nothing of it has happened, so each half is tried by itself.
   */
  async #runTogether(group: WaitingJob<Job, Outcome>[]): Promise<void> {
    try {
      const outcomes = await this.#roundTrip(group.map(({ job }) => job))
      for (const [n, { resolve, reject }] of group.entries()) {
        const outcome = outcomes[n]
        if (outcome === undefined) reject(new Error('A job of the group has no outcome.'))
        else resolve(outcome)
      }
    } catch (error) {
      if (group.length === 1 || !isRejected(error)) {
        for (const { reject } of group) reject(error)
        return
      }
      const half = group.length >> 1
      await this.#runTogether(group.slice(0, half))
      await this.#runTogether(group.slice(half))
    }
  }
}

/** Whether the transaction has no effect and never will: Postgres rejected it, or it never began. */
export function hasNoEffect(error: unknown): boolean {
  return isRejected(error) || (error instanceof RuntimeError && error.code === 'DATABASE_BUSY')
}

/** Whether Postgres itself rejected the transaction, according to the error or its cause. */
function isRejected(error: unknown): boolean {
  const roundTripError = error instanceof RoundTripError ? error : error instanceof Error ? error.cause : undefined
  return roundTripError instanceof RoundTripError && roundTripError.reusable
}
