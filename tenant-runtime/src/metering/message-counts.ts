// The realtime messages of tenants, by hour, and how many of them the homes have. No I/O: changes are returned as lines, from
// which a later start restores them.
import { hourMilliseconds, hourOf } from '@tenantry/contract'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'

/** Messages by the hours' starts in milliseconds since 1970. */
type Hours = Map<number, number>

/** The messages of a tenant since its home's counters began. Its home stores them under the ID. */
export interface MessageBatch {
  readonly id: string
  /** The ID of the home's counters, undefined until the home has stored messages. */
  counters: string | undefined
  readonly hours: Hours
  /** The messages that the home is known to have. */
  readonly stored: Hours
}

const hoursRetained = 48

const Count = Type.Integer({ minimum: 0 })
const HourLine = Type.Object({ tenant_id: Type.String(), id: Type.String(), hour: Count, count: Count })
const StoredLine = Type.Object({
  tenant_id: Type.String(),
  id: Type.String(),
  counters: Type.String(),
  stored: Type.Array(Type.Tuple([Count, Count])),
})
const GoneLine = Type.Object({ tenant_id: Type.String(), gone: Type.Literal(true) })
/** A line: the messages of an hour until then; or what the home has; or the deletion of the tenant. */
const Line = Type.Union([HourLine, StoredLine, GoneLine])
type Line = Static<typeof Line>

export class MessageCounts {
  readonly #newId: () => string
  readonly #tenants = new Map<string, MessageBatch>()
  #lines: Line[] = []
  /** The changed hours, which follow the lines. */
  readonly #changed = new Map<string, Set<number>>()

  /** @param newId returns a UUID */
  constructor(newId: () => string) {
    this.#newId = newId
  }

  /** Whether there are changes to write. */
  get hasChanges(): boolean {
    return this.#lines.length > 0 || this.#changed.size > 0
  }

  /** Adds messages. @param at in milliseconds since 1970 */
  count(tenantId: string, at: number, messages: number): void {
    const batch = this.#batchOf(tenantId)
    const hour = hourOf(at)
    if (!batch.hours.has(hour)) dropOld(batch, hour)
    batch.hours.set(hour, (batch.hours.get(hour) ?? 0) + messages)
    const changed = this.#changed.get(tenantId)
    if (changed === undefined) this.#changed.set(tenantId, new Set([hour]))
    else changed.add(hour)
  }

  /** Returns the tenant's messages; undefined when the home has all of them. */
  unstored(tenantId: string): MessageBatch | undefined {
    const batch = this.#tenants.get(tenantId)
    return batch !== undefined && unstoredHours(batch).length > 0 ? batch : undefined
  }

  /** Returns the number of messages that the home does not have. @param since in milliseconds since 1970 */
  unstoredSince(tenantId: string, since: number): number {
    const batch = this.#tenants.get(tenantId)
    if (batch === undefined) return 0
    return [...batch.hours.keys()].reduce((sum, hour) => sum + (hour < since ? 0 : unstoredOf(batch, hour)), 0)
  }

  /** Returns the tenants of whose messages some are not stored. */
  unstoredTenants(): string[] {
    return [...this.#tenants.keys()].filter((tenantId) => this.unstored(tenantId) !== undefined)
  }

  /** Notes that the home has stored messages. @param counters the ID of the home's counters */
  store(
    tenantId: string,
    { id }: MessageBatch,
    counters: string,
    stored: readonly (readonly [number, number])[],
  ): void {
    const batch = this.#tenants.get(tenantId)
    if (batch?.id !== id) return
    this.#writeCounts(tenantId)
    this.#lines.push({ tenant_id: tenantId, id, counters, stored: stored.map(([hour, count]) => [hour, count]) })
    setStored(batch, counters, stored)
  }

  /** Begins a new batch, because the home's counters have begun again, as after a restore. It has what was not stored. */
  restart(tenantId: string): void {
    const batch = this.#tenants.get(tenantId)
    if (batch === undefined) return
    this.#changed.delete(tenantId)
    this.#lines.push({ tenant_id: tenantId, gone: true })
    const hours = new Map(unstoredHours(batch).map((hour) => [hour, unstoredOf(batch, hour)]))
    this.#tenants.set(tenantId, { id: this.#newId(), counters: undefined, hours, stored: new Map() })
    this.#changed.set(tenantId, new Set(hours.keys()))
  }

  /** Evicts a deleted tenant. */
  evict(tenantId: string): void {
    if (!this.#tenants.delete(tenantId)) return
    this.#changed.delete(tenantId)
    this.#lines.push({ tenant_id: tenantId, gone: true })
  }

  /** Returns the lines of all changes since the last call, in order. */
  changes(): string[] {
    for (const tenantId of [...this.#changed.keys()]) this.#writeCounts(tenantId)
    const lines = this.#lines
    this.#lines = []
    return lines.map((line) => JSON.stringify(line))
  }

  /** Returns the lines of the whole content. */
  lines(): string[] {
    return [...this.#tenants]
      .flatMap(([tenantId, { id, counters, hours, stored }]): Line[] => [
        ...[...hours].map(([hour, count]) => ({ tenant_id: tenantId, id, hour, count })),
        ...(counters === undefined ? [] : [{ tenant_id: tenantId, id, counters, stored: [...stored] }]),
      ])
      .map((line) => JSON.stringify(line))
  }

  /**
   * Restores the lines of an earlier start.
   * @returns the number of unreadable lines
   */
  load(lines: readonly string[]): number {
    let unreadable = 0
    for (const text of lines) {
      const line = parseLine(text)
      if (line === undefined) unreadable++
      else if ('gone' in line) this.#tenants.delete(line.tenant_id)
      else {
        const batch = this.#batchOf(line.tenant_id, line.id)
        if ('stored' in line) setStored(batch, line.counters, line.stored)
        else batch.hours.set(line.hour, line.count)
      }
    }
    return unreadable
  }

  #batchOf(tenantId: string, id?: string): MessageBatch {
    let batch = this.#tenants.get(tenantId)
    if (batch === undefined) {
      batch = { id: id ?? this.#newId(), counters: undefined, hours: new Map(), stored: new Map() }
      this.#tenants.set(tenantId, batch)
    }
    return batch
  }

  #writeCounts(tenantId: string): void {
    const { id, hours } = this.#batchOf(tenantId)
    for (const hour of this.#changed.get(tenantId) ?? [])
      this.#lines.push({ tenant_id: tenantId, id, hour, count: hours.get(hour) ?? 0 })
    this.#changed.delete(tenantId)
  }
}

function setStored(batch: MessageBatch, counters: string, stored: readonly (readonly [number, number])[]): void {
  batch.counters = counters
  for (const [hour, count] of stored) batch.stored.set(hour, Math.max(count, batch.stored.get(hour) ?? 0))
}

function unstoredOf({ hours, stored }: MessageBatch, hour: number): number {
  return (hours.get(hour) ?? 0) - (stored.get(hour) ?? 0)
}

function unstoredHours(batch: MessageBatch): number[] {
  return [...batch.hours.keys()].filter((hour) => unstoredOf(batch, hour) > 0)
}

/** Drops the hours that the home has and that are old. */
function dropOld(batch: MessageBatch, now: number): void {
  for (const hour of batch.hours.keys()) {
    if (hour > now - hoursRetained * hourMilliseconds || unstoredOf(batch, hour) > 0) continue
    batch.hours.delete(hour)
    batch.stored.delete(hour)
  }
}

function parseLine(text: string): Line | undefined {
  try {
    const line: unknown = JSON.parse(text)
    return Value.Check(Line, line) ? line : undefined
  } catch {
    return undefined
  }
}
