// Which containers have ended and were not stopped by an operator, as the Engine's events report them. Pure.

/** An event of a container. */
interface ContainerEvent {
  id: string
  action: 'start' | 'stop' | 'die' | 'destroy'
}

/** `stop` comes a moment after `die`, or before it. */
interface LifeCycle {
  isStopped: boolean
  /** Milliseconds of the caller's clock; undefined while it runs. */
  diedAt: number | undefined
}

export class StoppedContainers {
  readonly #lifeCycles = new Map<string, LifeCycle>()

  observe({ id, action }: ContainerEvent, now: number): void {
    const before = this.#lifeCycles.get(id)
    if (action === 'start' || action === 'destroy') this.#lifeCycles.delete(id)
    else if (action === 'stop') this.#lifeCycles.set(id, { isStopped: true, diedAt: before?.diedAt })
    else this.#lifeCycles.set(id, { isStopped: before?.isStopped ?? false, diedAt: now })
  }

  /** Containers that ended at least `graceMs` ago without a `stop`, and have not been started since. */
  overdue(now: number, graceMs: number): string[] {
    return [...this.#lifeCycles]
      .filter(([, { isStopped, diedAt }]) => !isStopped && diedAt !== undefined && now - diedAt >= graceMs)
      .map(([id]) => id)
  }

  evict(id: string): void {
    this.#lifeCycles.delete(id)
  }
}
