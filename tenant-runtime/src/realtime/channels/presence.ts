// The presence of one topic: the entries of its channels, and the differences since the last message about it. Pure.

/** An entry of presence: what its client tracks, with a reference that is new for every change. */
export type PresenceMeta = Readonly<Record<string, unknown>> & { readonly phx_ref: string }

/** Entries by key, as clients receive them. */
type Entries = Record<string, { metas: PresenceMeta[] }>

export interface PresenceDiff {
  joins: Entries
  leaves: Entries
}

interface Entry {
  key: string
  meta: PresenceMeta
  /** The tracked payload as text, for comparison. */
  text: string
  /** The bytes of the text and the key. */
  bytes: number
}

/** The maximum bytes of the entries of one topic. Each client that joins receives them all. */
const maxBytes = 1024 * 1024

/** @template Owner what an entry belongs to: a channel, which has at most one */
export class Presence<Owner> {
  readonly #entries = new Map<Owner, Entry>()
  readonly #joins = new Map<string, Entry>()
  readonly #leaves = new Map<string, Entry>()
  readonly #newRef: () => string
  #bytes = 0
  /** The JSON of all entries, until one changes. */
  #stateText: string | undefined

  /** @param newRef returns a reference that no other entry has */
  constructor(newRef: () => string) {
    this.#newRef = newRef
  }

  /**
   * Creates or replaces the owner's entry.
   * @returns `same` when it was the same before, `full` when the entries of the topic would have too many bytes
   */
  track(owner: Owner, key: string, payload: Readonly<Record<string, unknown>>): 'changed' | 'same' | 'full' {
    const text = JSON.stringify(payload)
    const before = this.#entries.get(owner)
    if (before?.text === text) return 'same'
    const bytes = Buffer.byteLength(text) + Buffer.byteLength(key)
    if (this.#bytes - (before?.bytes ?? 0) + bytes > maxBytes) return 'full'
    if (before !== undefined) this.#remove(before)
    const previous = before === undefined ? {} : { phx_ref_prev: before.meta.phx_ref }
    this.#add(owner, { key, text, bytes, meta: { ...payload, ...previous, phx_ref: this.#newRef() } })
    return 'changed'
  }

  /** Adds an entry of another runtime, which is not limited: that runtime has accepted it. */
  put(owner: Owner, key: string, meta: PresenceMeta): void {
    const text = JSON.stringify(meta)
    this.#add(owner, { key, meta, text, bytes: Buffer.byteLength(text) + Buffer.byteLength(key) })
  }

  /** Removes the owner's entry. Returns false when there was none. */
  untrack(owner: Owner): boolean {
    const entry = this.#entries.get(owner)
    if (entry === undefined) return false
    this.#entries.delete(owner)
    this.#remove(entry)
    return true
  }

  /** The number of entries. */
  get size(): number {
    return this.#entries.size
  }

  /** Returns the owner's entry; undefined when there is none. */
  entryOf(owner: Owner): { key: string; meta: PresenceMeta } | undefined {
    return this.#entries.get(owner)
  }

  /** Whether the owner's entry has joined since the last call of `takeDiff`. */
  isNew(owner: Owner): boolean {
    const entry = this.#entries.get(owner)
    return entry !== undefined && this.#joins.has(entry.meta.phx_ref)
  }

  /** Returns all entries as JSON. */
  state(): string {
    this.#stateText ??= JSON.stringify(grouped(this.#entries.values()))
    return this.#stateText
  }

  /** Returns what has changed since the last call; undefined for nothing. */
  takeDiff(): PresenceDiff | undefined {
    if (this.#joins.size === 0 && this.#leaves.size === 0) return undefined
    const diff = { joins: grouped(this.#joins.values()), leaves: grouped(this.#leaves.values()) }
    this.#joins.clear()
    this.#leaves.clear()
    return diff
  }

  #add(owner: Owner, entry: Entry): void {
    this.#entries.set(owner, entry)
    this.#stateText = undefined
    this.#bytes += entry.bytes
    this.#joins.set(entry.meta.phx_ref, entry)
  }

  #remove(entry: Entry): void {
    this.#bytes -= entry.bytes
    this.#stateText = undefined
    const { phx_ref: ref } = entry.meta
    // No client has received an entry that joined since the last message.
    if (!this.#joins.delete(ref)) this.#leaves.set(ref, entry)
  }
}

function grouped(entries: Iterable<Entry>): Entries {
  // Without a prototype, because clients choose the keys.
  const groups = Object.create(null) as Entries
  for (const { key, meta } of entries) (groups[key] ??= { metas: [] }).metas.push(meta)
  return groups
}
