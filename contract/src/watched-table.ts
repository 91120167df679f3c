// The reading end of the watch protocol: a table by tenant id, kept on disk so that a restart without
// a control plane still serves (static stability). Gateway and runtime use it alike.
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
  /** Absolute URL of the watch, e.g. `http://127.0.0.1:4000/internal/v1/watch/routes`. */
  url: string
  internalToken: string
  schema: TSchema
  /** Snapshot file, mode 0600. */
  file: string
  fetch: typeof globalThis.fetch
  /** Called after every change that was applied; `undefined` when the tenant is gone. */
  onChange?: (tenantId: string, entry: E | undefined) => void
  /** Told of lost connections and unreadable lines; the table goes on by itself. */
  onError?: (error: Error) => void
}

/**
 * The entries of a watch by tenant id, kept up to date while `run` runs, and in a snapshot file that outlives the
 * process.
 */
export class WatchedTable<E extends Entry> {
  readonly #options: WatchedTableOptions<E>
  readonly #entries = new Map<string, E>()
  #synced = false
  #dirty = false
  #saving: Promise<void> | undefined

  constructor(options: WatchedTableOptions<E>) {
    this.#options = options
  }

  /** The entry of a tenant; undefined for one that the watch does not have. */
  get(tenantId: string): E | undefined {
    return this.#entries.get(tenantId)
  }

  /** All entries, in no order. */
  values(): IterableIterator<E> {
    return this.#entries.values()
  }

  get size(): number {
    return this.#entries.size
  }

  /** True once the whole set was read from the control plane in this run. */
  get synced(): boolean {
    return this.#synced
  }

  /** Reads the snapshot of an earlier run. A missing file is an empty table; a torn one is reported and ignored. */
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
      this.#options.onError?.(new Error(`snapshot ${this.#options.file} is unreadable`, { cause }))
    }
  }

  /**
   * Follows the watch until aborted, reconnecting with backoff (50 ms to 2 s). Returns when the last save is done.
   * An outage is told once, when it has lasted a while.
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
            new Error(`watch ${this.#options.url} is lost; what was known before goes on being served`, { cause }),
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
    const timer = setTimeout(() => silence.abort(new Error('the watch fell silent')), watchPingSeconds * 3000)
    try {
      const response = await this.#options.fetch(this.#options.url, {
        headers: { [internalTokenHeader]: this.#options.internalToken },
        signal: AbortSignal.any([signal, silence.signal]),
      })
      if (response.status !== 200 || response.body === null) {
        await response.body?.cancel()
        throw new Error(`the control plane answered ${response.status}`)
      }
      const seen = new Set<string>()
      let whole = false
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
            if (!whole && tenantId !== undefined) seen.add(tenantId)
          } else if (line.type === 'remove') {
            this.#remove(line.tenant_id)
          } else if (line.type === 'synced') {
            whole = true
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
    // A newer control plane may send what this part does not know yet: skip the line, keep the stream.
    this.#options.onError?.(new Error('the watch sent a line of an unknown form'))
    return undefined
  }

  #put(value: unknown): string | undefined {
    if (!this.#isEntry(value)) return undefined
    const entry = value
    const known = this.#entries.get(entry.tenant_id)
    // Several control planes may answer; an older generation never replaces a newer one.
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

  /** One save at a time; changes meanwhile are taken by the next. Never awaited on a request's path. */
  #save(): void {
    this.#saving ??= (async () => {
      try {
        while (this.#dirty) {
          this.#dirty = false
          await writeWhole(
            this.#options.file,
            [...this.#entries.values()].map((entry) => JSON.stringify(entry)).join('\n'),
          )
          await pause(200)
        }
      } catch (cause) {
        // Tried again with the watch's next line, which is a ping at the latest.
        this.#dirty = true
        this.#options.onError?.(new Error(`snapshot ${this.#options.file} was not saved`, { cause }))
      } finally {
        this.#saving = undefined
      }
    })()
  }
}

/** Replaces a file so that a reader sees the old text or the new one, never a part. */
async function writeWhole(file: string, text: string): Promise<void> {
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
