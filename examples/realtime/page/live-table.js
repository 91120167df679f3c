// A table that follows its changes: it is read once after each join, and every change since then is applied.

export class LiveTable {
  #records = new Map()
  /** Changes that arrive while the table is read; undefined at other times. */
  #held
  #options

  constructor(options) {
    this.#options = options
  }

  /** Reads the table. */
  async load() {
    this.#held = []
    const { data, error } = await this.#options.read()
    const held = this.#held
    this.#held = undefined
    if (error !== null) {
      this.#options.onError(error)
      return
    }
    this.#records = new Map(data.map((record) => [record.id, record]))
    for (const change of held) this.#change(change)
    this.#show()
  }

  apply(change) {
    if (this.#held !== undefined) this.#held.push(change)
    else {
      this.#change(change)
      this.#show()
    }
  }

  #change({ eventType, new: after, old: before }) {
    if (eventType === 'DELETE') this.#records.delete(before.id)
    else this.#records.set(after.id, after)
  }

  #show() {
    const newestFirst = (one, other) => String(other.created_at).localeCompare(String(one.created_at))
    this.#options.show([...this.#records.values()].sort(newestFirst))
  }
}
