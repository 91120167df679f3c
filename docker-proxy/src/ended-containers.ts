// Tracks containers that have ended without an operator's stop, from the Engine's events. Pure.

/** An event of a container. */
interface ContainerEvent {
  id: string
  action: 'start' | 'stop' | 'die' | 'destroy'
}

/** Life cycle of a container. `stop` may arrive shortly before or after `die`. */
interface LifeCycle {
  isStopped: boolean
  /** Time of the end in milliseconds of the caller's clock; undefined while the container runs. */
  diedAt: number | undefined
}

/** The containers of which an event reported the end. */
export class EndedContainers {
  readonly #lifeCycles = new Map<string, LifeCycle>()

  observe({ id, action }: ContainerEvent, now: number): void {
    const before = this.#lifeCycles.get(id)
    if (action === 'start' || action === 'destroy') this.#lifeCycles.delete(id)
    else if (action === 'stop') this.#lifeCycles.set(id, { isStopped: true, diedAt: before?.diedAt })
    else this.#lifeCycles.set(id, { isStopped: before?.isStopped ?? false, diedAt: now })
  }

  /** Returns containers that ended at least `graceMs` ago without a `stop`, and have not been started since. */
  overdue(now: number, graceMs: number): string[] {
    return [...this.#lifeCycles]
      .filter(([, { isStopped, diedAt }]) => !isStopped && diedAt !== undefined && now - diedAt >= graceMs)
      .map(([id]) => id)
  }

  evict(id: string): void {
    this.#lifeCycles.delete(id)
  }
}
