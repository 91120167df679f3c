// The reader of the watch protocol: a table of entries, stored on disk so that a restart without a control plane
// still serves (static stability). Gateway and runtime both use it.
import { isDeepStrictEqual } from 'node:util'
import type { TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import { internalTokenHeader } from './internal.ts'
import { sentToken, type InternalToken } from './internal-token.ts'
import { Outage } from './outage.ts'
import { pause } from './pause.ts'
import { readTableFile, TableFile } from './table-file.ts'
import { WatchLine, watchPingSeconds, type WatchKey } from './watch.ts'

type Entry<Key extends WatchKey> = { generation: number } & Record<Key, string>

interface WatchedTableOptions<E extends Entry<Key>, Key extends WatchKey> {
  /** Absolute URL of the watch, for example `http://127.0.0.1:4000/internal/v1/watch/routes`. */
  url: string
  internalToken: InternalToken
  schema: TSchema
  /** The member of an entry that identifies it. */
  key: Key
  /** Path of the snapshot, which has mode 0600. */
  file: string
  /** Paths of other snapshots that may contain entries of this table; undefined for none. */
  otherFiles?: () => Promise<string[]>
  /** Whether an entry belongs to this table. Others are ignored. By default, all do. */
  isOwn?: (id: string) => boolean
  fetch: typeof globalThis.fetch
  /** Called after every applied change; `undefined` if the entry was removed. */
  onChange?: (id: string, entry: E | undefined) => void
  /** Called each time after the whole set was read from the control plane. */
  onSynced?: () => void
  /** Handles lost connections and unreadable lines. The table continues by itself. */
  onError?: (error: Error) => void
}

/** The entries of a watch by their ID, such as the tenant's. They are current while `run` runs, and stored in a snapshot file. */
export class WatchedTable<E extends Entry<Key>, Key extends WatchKey = 'tenant_id'> {
  readonly #options: WatchedTableOptions<E, Key>
  readonly #entries = new Map<string, E>()
  readonly #isLine: Validator
  readonly #isEntry: Validator
  /** IDs of entries that have changed or were removed since they were saved. */
  readonly #unsaved = new Set<string>()
  readonly #saved: TableFile<E>
  #synced = false
  #saving: Promise<void> | undefined

  constructor(options: WatchedTableOptions<E, Key>) {
    this.#options = options
    this.#isLine = Compile(WatchLine(options.schema, options.key))
    this.#isEntry = Compile(options.schema)
    this.#saved = new TableFile(options.file, this.#entries)
  }

  /** Returns an entry; undefined if the watch does not have it. */
  get(id: string): E | undefined {
    return this.#entries.get(id)
  }

  /** Returns all entries, in no order. */
  values(): IterableIterator<E> {
    return this.#entries.values()
  }

  get size(): number {
    return this.#entries.size
  }

  /** Whether the whole set was read from the control plane in this run. */
  get synced(): boolean {
    return this.#synced
  }

  /** Reads the snapshots of an earlier run. A missing file is an empty table; a damaged one is reported and ignored. */
  async load(): Promise<void> {
    const { file, otherFiles } = this.#options
    for (const path of [file, ...((await otherFiles?.()) ?? [])]) await this.#loadFile(path)
  }

  async #loadFile(file: string): Promise<void> {
    const { entries, lines, damaged } = await readTableFile(file, this.#options.key)
    for (const entry of entries.values()) this.#put(entry)
    if (damaged > 0)
      this.#options.onError?.(new Error(`The snapshot ${file} has ${damaged} lines that cannot be read.`))
    if (file !== this.#options.file) return
    this.#unsaved.clear()
    if (damaged === 0) this.#saved.wasRead(lines)
  }

  /**
   * Follows the watch until aborted, and reconnects with a backoff of 50 ms to 2 s. It returns after the last save, and
   * reports an outage once, after it has lasted a while.
   */
  async run(signal: AbortSignal): Promise<void> {
    const isStopped = () => signal.aborted
    let delay = 50
    const outage = new Outage()
    const onLine = () => {
      delay = 50
      outage.over()
    }
    while (!isStopped()) {
      try {
        await this.#follow(signal, onLine)
      } catch (cause) {
        if (!isStopped() && outage.failed(performance.now())) {
          this.#options.onError?.(
            new Error(`The watch ${this.#options.url} is lost. Stored entries are still served.`, { cause }),
          )
        }
      }
      await pause(delay, signal)
      delay = Math.min(delay * 2, 2000)
    }
    await this.#saving
  }

  async #follow(signal: AbortSignal, onLine: () => unknown): Promise<void> {
    const silence = new AbortController()
    const timer = setTimeout(
      () => silence.abort(new Error('The watch was silent for too long.')),
      watchPingSeconds * 3000,
    )
    try {
      const response = await this.#options.fetch(this.#options.url, {
        headers: { [internalTokenHeader]: sentToken(this.#options.internalToken) },
        signal: AbortSignal.any([signal, silence.signal]),
      })
      if (response.status !== 200 || response.body === null) {
        await response.body?.cancel()
        throw new Error(`The control plane responded with ${response.status}.`)
      }
      const seen = new Set<string>()
      let isComplete = false
      let rest = ''
      for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
        timer.refresh()
        const lines = (rest + chunk).split('\n')
        rest = lines.pop() ?? ''
        for (const text of lines) {
          const line = this.#parse(text)
          if (line === undefined) continue
          onLine()
          if (line.type === 'put') {
            const id = this.#putEntry(line.entry)
            if (!isComplete && id !== undefined) seen.add(id)
          } else if (line.type === 'remove') {
            this.#remove(line[this.#options.key])
          } else if (line.type === 'synced') {
            isComplete = true
            for (const id of this.#entries.keys()) if (!seen.has(id)) this.#remove(id)
            this.#synced = true
            this.#options.onSynced?.()
          }
        }
        if (this.#unsaved.size > 0) this.#save()
      }
    } finally {
      clearTimeout(timer)
    }
  }

  #parse(text: string): WatchLine<E, Key> | undefined {
    const line: unknown = JSON.parse(text)
    if (this.#isLine.Check(line)) return line as WatchLine<E, Key>
    // A newer control plane may send lines that this part does not know. They are skipped.
    this.#options.onError?.(new Error('The watch sent a line of an unknown form.'))
    return undefined
  }

  #put(value: object): void {
    if (this.#isEntry.Check(value)) this.#putEntry(value as E)
  }

  #putEntry(entry: E): string | undefined {
    const id = entry[this.#options.key]
    if (this.#options.isOwn?.(id) === false) return undefined
    const known = this.#entries.get(id)
    // Several control planes may respond. An older generation never replaces a newer one.
    if (known !== undefined && (known.generation > entry.generation || isDeepStrictEqual(known, entry))) return id
    this.#entries.set(id, entry)
    this.#unsaved.add(id)
    this.#options.onChange?.(id, entry)
    return id
  }

  #remove(id: string): void {
    if (!this.#entries.delete(id)) return
    this.#unsaved.add(id)
    this.#options.onChange?.(id, undefined)
  }

  /**
   * Saves what has changed, one save at a time. The next save includes changes that are made meanwhile. No request waits
   * for it.
   */
  #save(): void {
    this.#saving ??= (async () => {
      let changed: string[] = []
      try {
        while (this.#unsaved.size > 0) {
          changed = [...this.#unsaved]
          this.#unsaved.clear()
          await this.#saved.save(changed)
          await pause(200)
        }
      } catch (cause) {
        // The next line of the watch, at the latest a ping, retries the save.
        for (const id of changed) this.#unsaved.add(id)
        this.#options.onError?.(new Error(`The snapshot ${this.#options.file} could not be saved.`, { cause }))
      } finally {
        this.#saving = undefined
      }
    })()
  }
}
