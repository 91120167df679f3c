// One run for all who ask for the same thing: whoever asks while one is under way is served by the next, which begins after
// they asked, and so covers them all.

export class SharedRun<Subject, T> {
  readonly #work: (subject: Subject) => Promise<T>
  readonly #keyOf: (subject: Subject) => string
  readonly #groups = new Map<string, { running: Promise<T>; next: Promise<T> | undefined }>()

  /** Subjects of one key share. */
  constructor(work: (subject: Subject) => Promise<T>, keyOf: (subject: Subject) => string = String) {
    this.#work = work
    this.#keyOf = keyOf
  }

  /** The outcome of a run that began after this call. */
  run(subject: Subject): Promise<T> {
    const group = this.#groups.get(this.#keyOf(subject))
    if (group === undefined) return this.#begin(subject)
    const begin = () => this.#begin(subject)
    group.next ??= group.running.then(begin, begin)
    return group.next
  }

  #begin(subject: Subject): Promise<T> {
    const key = this.#keyOf(subject)
    const running = this.#work(subject).finally(() => {
      if (this.#groups.get(key)?.next === undefined) this.#groups.delete(key)
    })
    this.#groups.set(key, { running, next: undefined })
    return running
  }
}
