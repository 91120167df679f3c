// Counts realtime messages: writes the counts of each turn of the event loop to disk before the messages leave, and stores them
// in the homes, from which the control plane reads them.
import type { Writable } from 'node:stream'
import { join } from 'node:path'
import { pause, runtimeOfShard, shardOf, tenantShards, type RuntimeShare } from '@tenantry/contract'
import { sql } from '../database/statement.ts'
import type { RlsContext } from '../tenancy/rls-context.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { MessageCounts, type MessageBatch } from './message-counts.ts'
import { MessageJournal } from './message-journal.ts'

interface MessageMeterOptions {
  /** The directory of the runtimes that share the tenants. */
  data: string
  share: RuntimeShare
  /** Whether other runtimes serve the same tenants. Then the reader of a home may read it through another one. */
  hasSiblings: boolean
  tenantOf: (tenantId: string) => Tenant | undefined
  /** Returns milliseconds since the epoch. */
  now: () => number
  /** Returns a UUID. */
  newId: () => string
  onError: (error: Error) => void
}

interface Shard {
  counts: MessageCounts
  journal: MessageJournal
}

const syncMilliseconds = 1_000
/** The number of syncs between two times at which a runtime with siblings stores its counts in the homes. */
const storeInterval = 60

const context: RlsContext = { role: 'service', reason: 'usage' }
/** Stores the counts of hours, unless the home's counters have begun again. */
const storeText = `insert into usage_hours (hour, meter, value)
  select to_timestamp(h.hour / 1000), 'realtime_messages:' || $1, h.count
  from storage_usage, jsonb_to_recordset($2::jsonb) as h (hour bigint, count bigint)
  where $3 = '' or books::text = $3
  on conflict (hour, meter) do update set value = greatest(usage_hours.value, excluded.value)`

const monthText = `select coalesce(sum(value), 0)::text as stored, (extract(epoch from start) * 1000)::bigint::text as month
  from (select date_trunc('month', now(), 'UTC') as start) as this
    left join usage_hours on hour >= start and meter like 'realtime_messages:%'
  group by start`

export class MessageMeter {
  readonly #options: MessageMeterOptions
  /** The shards with messages. Most tenants have none. */
  readonly #shards = new Map<number, Shard>()
  /** The shards of the tenants that count, whose computation takes longer than a lookup. */
  readonly #shardNumbers = new Map<string, number>()
  /** The shards with counts that are not written yet. */
  readonly #changed = new Set<Shard>()
  #held: Writable[] = []
  readonly #isHeld = new WeakSet<Writable>()
  #isScheduled = false
  readonly #endTurn = () => {
    this.#isScheduled = false
    this.write()
  }

  constructor(options: MessageMeterOptions) {
    this.#options = options
  }

  /** Counts messages of a tenant. */
  count(tenantId: string, messages: number): void {
    const shard = this.#shardOf(tenantId)
    shard.counts.count(tenantId, this.#options.now(), messages)
    this.#changed.add(shard)
    this.#schedule()
  }

  /** Holds back what is written to a stream in this turn of the event loop, until the turn's counts are on disk. */
  hold(stream: Writable): void {
    if (this.#isHeld.has(stream)) return
    stream.cork()
    this.#isHeld.add(stream)
    this.#held.push(stream)
    this.#schedule()
  }

  /** Writes the counts and then releases what is held, before the turn ends. */
  write(): void {
    for (const { journal } of this.#changed) journal.write()
    this.#changed.clear()
    const held = this.#held
    this.#held = []
    for (const stream of held) {
      this.#isHeld.delete(stream)
      stream.uncork()
    }
  }

  /**
   * Stores the tenant's counts in its home.
   * @throws RoundTripError, RuntimeError when the home cannot store them
   */
  async store(tenant: Tenant): Promise<void> {
    const shard = this.#shards.get(shardOf(tenant.id))
    let batch = shard?.counts.unstored(tenant.id)
    if (shard === undefined || batch === undefined) return
    if (!(await this.#tryStore(tenant, shard, batch))) {
      shard.counts.restart(tenant.id)
      shard.journal.write()
      batch = shard.counts.unstored(tenant.id)
      if (batch !== undefined) await this.#tryStore(tenant, shard, batch)
    }
    shard.journal.write()
  }

  /** Returns the tenant's messages of this month that the home has or this runtime has counted. */
  async ofMonth(tenant: Tenant): Promise<number> {
    const { rows } = await tenant.database.query(context, monthText)
    const [stored, month] = [Number(rows[0]?.['stored'] ?? 0), Number(rows[0]?.['month'] ?? 0)]
    return stored + (this.#shards.get(shardOf(tenant.id))?.counts.unstoredSince(tenant.id, month) ?? 0)
  }

  /** Loads the files of the shards of this runtime. Never throws. */
  load(): void {
    const { share } = this.#options
    for (let shard = 0; shard < tenantShards; shard++)
      if (runtimeOfShard(shard, share.runtimes) === share.number) this.#load(shard)
  }

  /** Syncs the files, until aborted. Never throws. */
  async run(signal: AbortSignal): Promise<void> {
    for (let n = 1; !signal.aborted; n++) {
      await pause(syncMilliseconds, signal)
      for (const { journal } of this.#shards.values()) await journal.sync()
      if (n % storeInterval === 0) await this.#storeAll()
    }
  }

  /** Writes and closes the files. */
  async close(): Promise<void> {
    await this.#storeAll()
    this.write()
    for (const { journal } of this.#shards.values()) journal.close()
  }

  /** Evicts a deleted tenant. */
  evict(tenantId: string): void {
    const shard = this.#shards.get(shardOf(tenantId))
    this.#shardNumbers.delete(tenantId)
    if (shard === undefined) return
    shard.counts.evict(tenantId)
    this.#changed.add(shard)
    this.#schedule()
  }

  /** Stores everything that the reader of a home may not find through another runtime. Never throws. */
  async #storeAll(): Promise<void> {
    const { hasSiblings, tenantOf, onError } = this.#options
    if (!hasSiblings) return
    for (const { counts } of this.#shards.values()) {
      for (const tenantId of counts.unstoredTenants()) {
        const tenant = tenantOf(tenantId)
        if (tenant === undefined) continue
        await this.store(tenant).catch((cause: unknown) =>
          onError(new Error('The counts of realtime messages could not be stored.', { cause })),
        )
      }
    }
  }

  /** Returns false when the home's counters have begun again, and nothing was stored. */
  async #tryStore(tenant: Tenant, { counts }: Shard, batch: MessageBatch): Promise<boolean> {
    const hours = [...batch.hours]
    const rows = JSON.stringify(hours.map(([hour, count]) => ({ hour, count })))
    const [, usage] = await tenant.database.run(
      context,
      sql(storeText, batch.id, rows, batch.counters ?? ''),
      sql('select books::text from storage_usage'),
    )
    const counters = usage?.rows[0]?.['books']
    if (typeof counters !== 'string') throw new Error(`The home of the tenant ${tenant.id} has no counters.`)
    if (batch.counters !== undefined && batch.counters !== counters) return false
    counts.store(tenant.id, batch, counters, hours)
    return true
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(this.#endTurn)
  }

  #shardOf(tenantId: string): Shard {
    const number = this.#shardNumbers.get(tenantId) ?? shardOf(tenantId)
    this.#shardNumbers.set(tenantId, number)
    return this.#shards.get(number) ?? this.#addShard(number)
  }

  #addShard(number: number): Shard {
    const { data, newId, onError } = this.#options
    const counts = new MessageCounts(newId)
    const path = join(data, 'realtime-messages', `${number}.ndjson`)
    const shard = { counts, journal: new MessageJournal({ path, counts, onError }) }
    this.#shards.set(number, shard)
    return shard
  }

  #load(number: number): void {
    const shard = this.#addShard(number)
    shard.journal.load()
    if (shard.counts.lines().length === 0) this.#shards.delete(number)
  }
}
