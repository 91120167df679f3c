// What users were told, and so what they may find: kept by path, for writers that own their paths and for paths that many
// write at once.

/** `bucket/path` → SHA-256 of the bytes; `bucket/` alone stands for the bucket itself. */
export type Files = ReadonlyMap<string, string>

/** Paths that one writer alone writes, one change after the other. A change whose answer never came has happened whole or not at all. */
export class OwnPaths {
  readonly prefixes: readonly string[]
  #known: Files = new Map()
  #perhaps: Files | undefined

  /** All keys that begin with one of the prefixes. */
  constructor(prefixes: readonly string[]) {
    this.prefixes = prefixes
  }

  get files(): Files {
    return this.#known
  }

  /** The answer to the last change is not known. */
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

  refused(): void {
    this.#perhaps = undefined
  }

  /** What is wrong with what is found. It is what must be found from now on. */
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
        `${key}: told ${wanted.get(key)?.slice(0, 8) ?? 'nothing'}, found ${found.get(key)?.slice(0, 8) ?? 'nothing'}`,
    )
}

interface Write {
  /** Undefined for a delete. */
  content: string | undefined
  began: number
  /** Undefined as long as there is no answer. */
  ended: number | undefined
}

/** Paths that many write at once: what is found must be of a write that none which was answered has followed. */
export class SharedPaths {
  readonly #writes = new Map<string, Write[]>()
  #clock = 0

  /** @returns what to call when it is acknowledged */
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
        wrong.push(`${key}: ${found?.slice(0, 8) ?? 'nothing'} is none of the last of ${writes.length} writes`)
      }
      this.#writes.set(key, [{ content: found, began: -1, ended: -1 }])
    }
    return wrong
  }
}
