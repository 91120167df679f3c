// -

export interface Field {
  name: string
  parse: (text: string) => unknown
}

/** A prepared statement as one connection knows it. */
export interface Prepared {
  name: string
  fields: Field[] | undefined
}

const maxPrepared = 256

/** The statements that one connection has prepared, least recently used first. */
export class PreparedStatements {
  readonly #known = new Map<string, Prepared>()
  /** Names that must be closed before anything else: those of dropped statements, and those whose Parse may have failed. */
  #closing: string[] = []
  #count = 0

  take(text: string): { prepared: Prepared; fresh: boolean } {
    const known = this.#known.get(text)
    if (known !== undefined) {
      this.#known.delete(text)
      this.#known.set(text, known)
      return { prepared: known, fresh: false }
    }
    const prepared: Prepared = { name: `s${++this.#count}`, fields: undefined }
    this.#known.set(text, prepared)
    if (this.#known.size > maxPrepared) {
      for (const [oldest, { name }] of this.#known) {
        this.#known.delete(oldest)
        this.#closing.push(name)
        break
      }
    }
    return { prepared, fresh: true }
  }

  drop(text: string): void {
    const prepared = this.#known.get(text)
    if (prepared === undefined) return
    this.#known.delete(text)
    this.#closing.push(prepared.name)
  }

  takeClosing(): string[] {
    const names = this.#closing
    this.#closing = []
    return names
  }
}
