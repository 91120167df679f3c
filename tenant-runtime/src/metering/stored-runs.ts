// The observed runs of the tenants that this runtime serves, stored in a file for each shard of tenants. A shard always has one
// runtime, so its file has one writer, and is complete when another number of runtimes shares the tenants at a later start.
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isMissingFile, pause, runtimeOfShard, shardOf, type RuntimeShare } from '@tenantry/contract'
import { ObservedRuns, type EndedRun } from './observed-runs.ts'
import { ObservedRunsFile } from './observed-runs-file.ts'

interface StoredRunsOptions {
  /** The directory of the runtimes that share the tenants. */
  data: string
  share: RuntimeShare
  onError: (error: Error) => void
}

interface Shard {
  runs: ObservedRuns
  file: ObservedRunsFile
}

const intervalMilliseconds = 1_000

export class StoredRuns {
  readonly #options: StoredRunsOptions
  readonly #directory: string
  /** The shards with runs. Most tenants have none. */
  readonly #shards = new Map<number, Shard>()

  constructor(options: StoredRunsOptions) {
    this.#options = options
    this.#directory = join(options.data, 'run-witness')
  }

  /** Notes a run that has ended. */
  note(tenantId: string, end: EndedRun): void {
    this.#shard(shardOf(tenantId)).runs.note(tenantId, end)
  }

  /** Returns the hours of a tenant to report to the control plane: see `ObservedRuns`. */
  report(tenantId: string, countersId: string): ReturnType<ObservedRuns['report']> {
    return this.#shards.get(shardOf(tenantId))?.runs.report(tenantId, countersId) ?? new Map()
  }

  /** Evicts a deleted tenant. */
  evict(tenantId: string): void {
    this.#shards.get(shardOf(tenantId))?.runs.evict(tenantId)
  }

  /** Loads the files of the shards of this runtime. Never throws. */
  async load(): Promise<void> {
    const { onError } = this.#options
    let unreadable = 0
    let total = 0
    try {
      const stored = await this.#storedShards()
      const earlier = await this.#earlierLines()
      for (const shard of stored) if (this.#isOwn(shard)) await this.#shard(shard).file.load()
      for (const [shard, lines] of earlier) {
        if (stored.has(shard) || !this.#isOwn(shard)) continue
        const { runs, file } = this.#shard(shard)
        unreadable += runs.load(lines)
        total += lines.length
        await file.save()
      }
      if (unreadable > 0) onError(new Error(`${unreadable} of ${total} lines of observed runs could not be read.`))
      if (earlier.size > 0) await this.#removeEarlier([...earlier.keys()])
    } catch (cause) {
      onError(new Error('The observed runs could not be read.', { cause }))
    }
  }

  /** Writes until aborted, and once more at the end. Never throws. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#save()
      await pause(intervalMilliseconds, signal)
    }
    await this.#save()
  }

  async #save(): Promise<void> {
    for (const { file } of this.#shards.values()) await file.save()
  }

  #isOwn(shard: number): boolean {
    const { number, runtimes } = this.#options.share
    return runtimeOfShard(shard, runtimes) === number
  }

  #shard(number: number): Shard {
    let shard = this.#shards.get(number)
    if (shard === undefined) {
      const runs = new ObservedRuns()
      const path = join(this.#directory, `${number}.ndjson`)
      shard = { runs, file: new ObservedRunsFile({ path, observed: runs, onError: this.#options.onError }) }
      this.#shards.set(number, shard)
    }
    return shard
  }

  async #storedShards(): Promise<ReadonlySet<number>> {
    const names = await readdir(this.#directory).catch((cause: unknown) => {
      if (isMissingFile(cause)) return []
      throw cause
    })
    return new Set(names.flatMap((name) => (/^\d+\.ndjson$/.test(name) ? [Number.parseInt(name, 10)] : [])))
  }

  /** The file of all tenants, which earlier versions wrote. */
  get #earlierPath(): string {
    return join(this.#options.data, 'run-witness.ndjson')
  }

  /** Reads that file, by shards. Lines that name no tenant, such as a torn one, are ignored. */
  async #earlierLines(): Promise<ReadonlyMap<number, readonly string[]>> {
    const text = await readFile(this.#earlierPath, 'utf8').catch((cause: unknown) => {
      if (isMissingFile(cause)) return ''
      throw cause
    })
    const shards = new Map<number, string[]>()
    for (const line of text.split('\n')) {
      const tenantId = /^\{"tenant_id":"([^"\\]+)"/.exec(line)?.[1]
      if (tenantId === undefined) continue
      const shard = shardOf(tenantId)
      const lines = shards.get(shard)
      if (lines === undefined) shards.set(shard, [line])
      else lines.push(line)
    }
    return shards
  }

  /** Removes that file when all of its shards have files of their own. */
  async #removeEarlier(shards: readonly number[]): Promise<void> {
    const stored = await this.#storedShards()
    if (shards.every((shard) => stored.has(shard))) await rm(this.#earlierPath, { force: true })
  }
}
