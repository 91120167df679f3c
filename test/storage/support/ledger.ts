// Records which changes users received responses to, and so what they must find, for paths with one writer and for
// paths that many write concurrently.

/** Maps `bucket/path` to the SHA-256 of the bytes; the key `bucket/` stands for the bucket itself. */
export type Files = ReadonlyMap<string, string>

/**
 * Paths with a single writer, which makes one change after the other. A change without a response has happened whole or
 * not at all.
 */
export class OwnPaths {
  readonly prefixes: readonly string[]
  #known: Files = new Map()
  #perhaps: Files | undefined

  /** Covers all keys that begin with one of the prefixes. */
  constructor(prefixes: readonly string[]) {
    this.prefixes = prefixes
  }

  get files(): Files {
    return this.#known
  }

  /** True while the outcome of the last change is unknown. */
  get doubtful(): boolean {
    return this.#perhaps !== undefined
  }

  begin(after: Files): void {
    this.#perhaps = after
  }

  acknowledged(): void {
    this.#known = this.#perhaps ?? this.#known
    this.#perhaps = undefined
  }

  rejected(): void {
    this.#perhaps = undefined
  }

  /** Returns the differences from what must be found. From now on the found state is the expected one. */
  compare(all: Files): string[] {
    const found = new Map([...all].filter(([key]) => this.prefixes.some((prefix) => key.startsWith(prefix))))
    const wrong = [this.#known, this.#perhaps].some((files) => files !== undefined && same(files, found))
      ? []
      : differences(this.#known, found)
    this.#known = found
    this.#perhaps = undefined
    return wrong
  }
}

function same(one: Files, other: Files): boolean {
  return one.size === other.size && [...one].every(([key, content]) => other.get(key) === content)
}

function differences(wanted: Files, found: Files): string[] {
  return [...new Set([...wanted.keys(), ...found.keys()])]
    .filter((key) => wanted.get(key) !== found.get(key))
    .map(
      (key) =>
        `${key}: acknowledged ${wanted.get(key)?.slice(0, 8) ?? 'nothing'}, found ${found.get(key)?.slice(0, 8) ?? 'nothing'}`,
    )
}

interface Write {
  /** Undefined for a delete. */
  content: string | undefined
  began: number
  /** Undefined until there is a response. */
  ended: number | undefined
}

/** Paths with many concurrent writers: the found content must be of a write that no acknowledged write follows. */
export class SharedPaths {
  readonly #writes = new Map<string, Write[]>()
  #clock = 0

  /** @returns a function to call when the write is acknowledged */
  begin(key: string, content: string | undefined): () => void {
    const write: Write = { content, began: this.#clock++, ended: undefined }
    const writes = this.#writes.get(key) ?? [{ content: undefined, began: -1, ended: -1 }]
    this.#writes.set(key, [...writes, write])
    return () => {
      write.ended = this.#clock++
    }
  }

  compare(all: Files): string[] {
    const wrong: string[] = []
    for (const [key, writes] of this.#writes) {
      const last = Math.max(...writes.map(({ began, ended }) => (ended === undefined ? -1 : began)))
      const found = all.get(key)
      if (!writes.some(({ content, ended }) => content === found && (ended === undefined || ended >= last))) {
        wrong.push(
          `${key}: ${found?.slice(0, 8) ?? 'nothing'} is not the content of any of the last of ${writes.length} writes`,
        )
      }
      this.#writes.set(key, [{ content: found, began: -1, ended: -1 }])
    }
    return wrong
  }
}
