// Shares runs between callers with the same subject: callers during a run share the next one, which begins after their
// calls and so covers all of them.

export class SharedRun<Subject, T> {
  readonly #work: (subject: Subject) => Promise<T>
  readonly #keyOf: (subject: Subject) => string
  readonly #groups = new Map<string, { running: Promise<T>; next: Promise<T> | undefined }>()

  /** Creates the runner. Subjects with the same key share runs. */
  constructor(work: (subject: Subject) => Promise<T>, keyOf: (subject: Subject) => string = String) {
    this.#work = work
    this.#keyOf = keyOf
  }

  /** Returns the result of a run that began after this call. */
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
