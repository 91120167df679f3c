// Runs a function in the next round of the event loop.

/** A function that runs once in the next round, however often that is requested before. */
export class NextRound {
  readonly #run: () => void
  readonly #milliseconds: number
  #isScheduled = false

  /** @param milliseconds the duration of a round; by default, it is one of the event loop */
  constructor(run: () => void, milliseconds = 0) {
    this.#run = run
    this.#milliseconds = milliseconds
  }

  /** Schedules the run, unless it is scheduled. The function may schedule the next one. */
  schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    if (this.#milliseconds === 0) setImmediate(this.#begin)
    else setTimeout(this.#begin, this.#milliseconds)
  }

  readonly #begin = (): void => {
    this.#isScheduled = false
    this.#run()
  }
}
