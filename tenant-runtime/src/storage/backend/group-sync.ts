// fsync of directories in groups: everyone who asks while one runs is served by the next, which covers them all.
import { open } from 'node:fs/promises'

interface Group {
  running: Promise<void>
  next: Promise<void> | undefined
}

export class GroupSync {
  readonly #groups = new Map<string, Group>()

  /** Returns when an fsync of the directory that began after this call has ended. */
  sync(directory: string): Promise<void> {
    const group = this.#groups.get(directory)
    if (group === undefined) {
      const running = this.#run(directory)
      this.#groups.set(directory, { running, next: undefined })
      return running
    }
    group.next ??= group.running.then(
      () => this.#advance(directory),
      () => this.#advance(directory),
    )
    return group.next
  }

  #advance(directory: string): Promise<void> {
    const running = this.#run(directory)
    this.#groups.set(directory, { running, next: undefined })
    return running
  }

  async #run(directory: string): Promise<void> {
    try {
      const handle = await open(directory, 'r')
      try {
        await handle.sync()
      } finally {
        await handle.close()
      }
    } finally {
      if (this.#groups.get(directory)?.next === undefined) this.#groups.delete(directory)
    }
  }
}
