// The sender of watches: the change feed keeps one copy of the published entries current, and every watcher receives it, in
// parts between which other work is done.
import type { WatchKey, WatchLine } from '@tenantry/contract'
import type { Change, ChangeListener } from '../platform/change-feed.ts'

/** Reads the published entries. */
export interface EntrySource<Entry> {
  /** Yields all entries, in no order. */
  all(): AsyncIterable<Entry>
  /** Returns those of the entries that exist. */
  some(ids: ReadonlySet<string>): Promise<Entry[]>
}

interface WatchHubOptions<Entry, Kind extends string> {
  source: EntrySource<Entry>
  /** The kinds of watches. The watchers of each receive its part of an entry. */
  kinds: readonly Kind[]
  idOf: (entry: Entry) => string
  /** Returns the part of an entry that watchers of a kind receive; undefined for none. */
  partOf: (entry: Entry, kind: Kind) => object | undefined
  /** Whether two entries have equal parts, so that nothing is sent. */
  isSame: (entry: Entry, before: Entry) => boolean
  /** The member of the parts that identifies their entry. */
  key: WatchKey
  /** Whether a change may concern an entry, whose ID is then the change's subject. */
  isRelevant: (change: Change) => boolean
  now: () => Date
  onError: (error: Error) => void
}

/** Receives lines; returns false if it receives nothing more: it has left, or is too slow and is disconnected. */
export type Watcher = (text: string) => boolean

interface WatchOptions {
  /** Whether the watch receives an entry; by default, all. */
  isWatched?: (id: string) => boolean
  /** Resolves when the watcher can take the next part of the whole set, or has left. */
  drained?: () => Promise<unknown>
}

/**
 * The maximum length of the parts in which a whole set is sent, and the milliseconds in which one is made. Nothing else is
 * done meanwhile, and watches of all kinds have equal shares of the time.
 */
const maxPartLength = 64 * 1024
const maxPartMilliseconds = 2

/** Stores the published entries in memory, and sends them, and then each change, to every watch. */
export class WatchHub<Entry, Kind extends string> {
  readonly #options: WatchHubOptions<Entry, Kind>
  readonly #entries = new Map<string, Entry>()
  /** Watchers by kind, with the entries that each receives. */
  readonly #watchers = new Map<Kind, Map<Watcher, (id: string) => boolean>>()
  #stale = new Set<string>()
  #reload = true
  #wasComplete = false
  #refreshing: Promise<void> | undefined

  constructor(options: WatchHubOptions<Entry, Kind>) {
    this.#options = options
    for (const kind of options.kinds) this.#watchers.set(kind, new Map())
  }

  /** Handles every event of the change feed. */
  readonly onChange: ChangeListener = (change) => {
    if (change === 'resync') this.#reload = true
    else if (!this.#options.isRelevant(change)) return
    else this.#stale.add(change.subject)
    void this.#refresh()
  }

  /**
   * Sends the whole set and then the changes, until the returned function is called. It resolves after the whole set.
   * @throws Error if the set cannot be read
   */
  async watch(
    kind: Kind,
    watcher: Watcher,
    { isWatched = () => true, drained = nextTurn }: WatchOptions = {},
  ): Promise<() => void> {
    await this.#refresh()
    // An incomplete set that ends with `synced` would remove all other entries. A set that was complete once is still valid.
    if (!this.#wasComplete) throw new Error('The published entries are not available.')
    const watchers = this.#of(kind)
    const leave = () => void watchers.delete(watcher)
    // Changes are sent from now on, also between parts of the set, which consist of the newest entries.
    watchers.set(watcher, isWatched)
    try {
      await this.#sendAll(kind, watcher, { isWatched, drained })
    } catch (cause) {
      leave()
      this.#options.onError(new Error('The published entries could not be sent.', { cause }))
      throw cause
    }
    return leave
  }

  /** Sends the whole set, unless the watcher leaves meanwhile. @throws Error if a part of an entry cannot be made */
  async #sendAll(kind: Kind, watcher: Watcher, { isWatched, drained }: Required<WatchOptions>): Promise<void> {
    const watchers = this.#of(kind)
    let text = ''
    const { now } = this.#options
    let begun = now().getTime()
    for (const [id, entry] of this.#entries) {
      const part = isWatched(id) ? this.#options.partOf(entry, kind) : undefined
      if (part !== undefined) text += line({ type: 'put', entry: part })
      if (text.length < maxPartLength && now().getTime() - begun < maxPartMilliseconds) continue
      if (text !== '' && !watcher(text)) watchers.delete(watcher)
      text = ''
      await drained()
      if (!watchers.has(watcher)) return
      begun = now().getTime()
    }
    if (!watcher(text + line({ type: 'synced' }))) watchers.delete(watcher)
  }

  /** Sends a heartbeat to every watch. The caller repeats it every `watchPingSeconds`. */
  ping(): void {
    for (const kind of this.#options.kinds) this.#report(kind, undefined, line({ type: 'ping' }))
  }

  /** Refreshes the entries, one call at a time. The next round reads entries that become stale meanwhile. */
  #refresh(): Promise<void> {
    this.#refreshing ??= (async () => {
      // The work must not begin before this assignment: with nothing to do, the reset below would come first.
      await Promise.resolve()
      try {
        while (this.#reload || this.#stale.size > 0) {
          if (this.#reload) await this.#readAll()
          else await this.#readSome()
        }
      } catch (cause) {
        this.#reload = true
        this.#options.onError(new Error('The published entries could not be read.', { cause }))
      } finally {
        this.#refreshing = undefined
      }
    })()
    return this.#refreshing
  }

  async #readAll(): Promise<void> {
    this.#reload = false
    this.#stale.clear()
    const seen = new Set<string>()
    for await (const entry of this.#options.source.all()) {
      seen.add(this.#put(entry))
    }
    for (const id of this.#entries.keys()) if (!seen.has(id)) this.#remove(id)
    this.#wasComplete = true
  }

  async #readSome(): Promise<void> {
    const ids = this.#stale
    this.#stale = new Set()
    const found = await this.#options.source.some(ids).catch((cause: unknown) => {
      for (const id of ids) this.#stale.add(id)
      throw cause
    })
    for (const entry of found) ids.delete(this.#put(entry))
    for (const id of ids) this.#remove(id)
  }

  #put(entry: Entry): string {
    const { idOf, partOf, kinds, isSame } = this.#options
    const id = idOf(entry)
    const before = this.#entries.get(id)
    if (before !== undefined && isSame(entry, before)) return id
    this.#entries.set(id, entry)
    for (const kind of kinds) {
      if (this.#of(kind).size === 0) continue
      const part = partOf(entry, kind)
      if (part !== undefined) this.#report(kind, id, line({ type: 'put', entry: part }))
      else if (before !== undefined && partOf(before, kind) !== undefined) this.#report(kind, id, this.#removal(id))
    }
    return id
  }

  #remove(id: string): void {
    if (!this.#entries.delete(id)) return
    for (const kind of this.#options.kinds) this.#report(kind, id, this.#removal(id))
  }

  #removal(id: string): string {
    return `${JSON.stringify({ type: 'remove', [this.#options.key]: id })}\n`
  }

  /** Sends a line to the watchers of an entry. @param id ID of the line's entry; undefined for all */
  #report(kind: Kind, id: string | undefined, text: string): void {
    const watchers = this.#of(kind)
    for (const [watcher, isWatched] of watchers) {
      if ((id === undefined || isWatched(id)) && !watcher(text)) watchers.delete(watcher)
    }
  }

  #of(kind: Kind): Map<Watcher, (id: string) => boolean> {
    return this.#watchers.get(kind) ?? new Map<Watcher, (id: string) => boolean>()
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function line(value: Exclude<WatchLine<object>, { type: 'remove' }>): string {
  return `${JSON.stringify(value)}\n`
}
