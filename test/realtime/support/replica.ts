// A client's copy of collections: the state that it read after it had subscribed, and the changes that arrived since then.
import { setTimeout as pause } from 'node:timers/promises'

export interface StoredRecord {
  collection: string
  id: string
  owner: string
  message: string
}

/** A change; `record` is undefined for a deletion. */
export interface Change {
  collection: string
  id: string
  record: StoredRecord | undefined
}

export class Replica {
  readonly #read: () => Promise<StoredRecord[]>
  #records = new Map<string, StoredRecord>()
  /** The changes since the subscription. */
  #changes: Change[] = []
  #subscription = 0
  #isLoaded = false

  /** @param read reads the current state, as far as the client may */
  constructor(read: () => Promise<StoredRecord[]>) {
    this.#read = read
  }

  get isLoaded(): boolean {
    return this.#isLoaded
  }

  /** Reads the state, because the client has subscribed. */
  async subscribed(): Promise<void> {
    const subscription = ++this.#subscription
    this.#isLoaded = false
    this.#changes = []
    while (subscription === this.#subscription) {
      const records = await this.#read().catch(() => undefined)
      if (subscription !== this.#subscription) return
      if (records !== undefined) {
        this.#records = new Map(records.map((record) => [keyOf(record), record]))
        for (const change of this.#changes.splice(0)) this.#apply(change)
        this.#isLoaded = true
        return
      }
      await pause(100)
    }
  }

  /** Applies a change that arrived. */
  apply(change: Change): void {
    if (this.#isLoaded) this.#apply(change)
    else this.#changes.push(change)
  }

  /** Compares the copy with what is stored. */
  differences(stored: readonly StoredRecord[]): string[] {
    const wanted = new Map(stored.map((record) => [keyOf(record), record]))
    return [...new Set([...wanted.keys(), ...this.#records.keys()])]
      .filter((key) => wanted.get(key)?.message !== this.#records.get(key)?.message)
      .map(
        (key) =>
          `${key} is ${this.#records.get(key)?.message ?? 'absent'}, not ${wanted.get(key)?.message ?? 'absent'}`,
      )
  }

  #apply(change: Change): void {
    if (change.record === undefined) this.#records.delete(keyOf(change))
    else this.#records.set(keyOf(change), change.record)
  }
}

function keyOf({ collection, id }: { collection: string; id: string }): string {
  return `${collection} ${id}`
}
