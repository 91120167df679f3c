// The reader of the watch protocol: a table by tenant ID, stored on disk so that a restart without a control plane
// still serves (static stability). Gateway and runtime both use it.
import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { internalTokenHeader } from './internal.ts'
import { isMissingFile } from './missing-file.ts'
import { Outage } from './outage.ts'
import { pause } from './pause.ts'
import { WatchLine, watchPingSeconds } from './watch.ts'

interface Entry {
  tenant_id: string
  generation: number
}

interface WatchedTableOptions<E extends Entry> {
  /** Absolute URL of the watch, for example `http://127.0.0.1:4000/internal/v1/watch/routes`. */
  url: string
  internalToken: string
  schema: TSchema
  /** Path of the snapshot, which has mode 0600. */
  file: string
  fetch: typeof globalThis.fetch
  /** Called after every applied change; `undefined` if the tenant was removed. */
  onChange?: (tenantId: string, entry: E | undefined) => void
  /** Handles lost connections and unreadable lines. The table continues by itself. */
  onError?: (error: Error) => void
}

/** The entries of a watch by tenant ID. They are current while `run` runs, and stored in a snapshot file. */
export class WatchedTable<E extends Entry> {
  readonly #options: WatchedTableOptions<E>
  readonly #entries = new Map<string, E>()
  #synced = false
  #dirty = false
  #saving: Promise<void> | undefined

  constructor(options: WatchedTableOptions<E>) {
    this.#options = options
  }

  /** Returns the entry of a tenant; undefined if the watch does not have it. */
  get(tenantId: string): E | undefined {
    return this.#entries.get(tenantId)
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

  /** Reads the snapshot of an earlier run. A missing file is an empty table; a damaged one is reported and ignored. */
  async load(): Promise<void> {
    let text: string
    try {
      text = await readFile(this.#options.file, 'utf8')
    } catch (cause) {
      if (isMissingFile(cause)) return
      throw cause
    }
    try {
      for (const line of text.split('\n')) {
        if (line !== '') this.#put(JSON.parse(line))
      }
    } catch (cause) {
      this.#options.onError?.(new Error(`The snapshot ${this.#options.file} cannot be read.`, { cause }))
    }
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
        headers: { [internalTokenHeader]: this.#options.internalToken },
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
            const tenantId = this.#put(line.entry)
            if (!isComplete && tenantId !== undefined) seen.add(tenantId)
          } else if (line.type === 'remove') {
            this.#remove(line.tenant_id)
          } else if (line.type === 'synced') {
            isComplete = true
            for (const tenantId of this.#entries.keys()) if (!seen.has(tenantId)) this.#remove(tenantId)
            this.#synced = true
          }
        }
        if (this.#dirty) this.#save()
      }
    } finally {
      clearTimeout(timer)
    }
  }

  #parse(text: string): WatchLine<unknown> | undefined {
    const line: unknown = JSON.parse(text)
    const schema = WatchLine(this.#options.schema)
    if (Value.Check(schema, line)) return line
    // A newer control plane may send lines that this part does not know. They are skipped.
    this.#options.onError?.(new Error('The watch sent a line of an unknown form.'))
    return undefined
  }

  #put(value: unknown): string | undefined {
    if (!this.#isEntry(value)) return undefined
    const entry = value
    const known = this.#entries.get(entry.tenant_id)
    // Several control planes may respond. An older generation never replaces a newer one.
    if (known !== undefined && known.generation > entry.generation) return entry.tenant_id
    this.#entries.set(entry.tenant_id, entry)
    this.#dirty = true
    this.#options.onChange?.(entry.tenant_id, entry)
    return entry.tenant_id
  }

  #isEntry(value: unknown): value is E {
    return Value.Check(this.#options.schema, value)
  }

  #remove(tenantId: string): void {
    if (!this.#entries.delete(tenantId)) return
    this.#dirty = true
    this.#options.onChange?.(tenantId, undefined)
  }

  /**
   * Saves the snapshot, one save at a time. The next save includes changes that are made meanwhile. No request waits
   * for it.
   */
  #save(): void {
    this.#saving ??= (async () => {
      try {
        while (this.#dirty) {
          this.#dirty = false
          await writeAtomically(
            this.#options.file,
            [...this.#entries.values()].map((entry) => JSON.stringify(entry)).join('\n'),
          )
          await pause(200)
        }
      } catch (cause) {
        // The next line of the watch, at the latest a ping, retries the save.
        this.#dirty = true
        this.#options.onError?.(new Error(`The snapshot ${this.#options.file} could not be saved.`, { cause }))
      } finally {
        this.#saving = undefined
      }
    })()
  }
}

/** Replaces a file atomically, so that a reader sees the old text or the new one. */
async function writeAtomically(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true })
  const next = `${file}.next`
  const handle = await open(next, 'w', 0o600)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await rename(next, file)
}
