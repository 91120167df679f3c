// One run for all who ask for the same thing: whoever asks while one is under way is served by the next, which begins after
// they asked, and so covers them all.

export class SharedRun<T> {
  readonly #work: (key: string) => Promise<T>
  readonly #groups = new Map<string, { running: Promise<T>; next: Promise<T> | undefined }>()

  constructor(work: (key: string) => Promise<T>) {
    this.#work = work
  }

  /** The outcome of a run that began after this call. */
  run(key: string): Promise<T> {
    const group = this.#groups.get(key)
    if (group === undefined) return this.#begin(key)
    const begin = () => this.#begin(key)
    group.next ??= group.running.then(begin, begin)
    return group.next
  }

  #begin(key: string): Promise<T> {
    const running = this.#work(key).finally(() => {
      if (this.#groups.get(key)?.next === undefined) this.#groups.delete(key)
    })
    this.#groups.set(key, { running, next: undefined })
    return running
  }
}
