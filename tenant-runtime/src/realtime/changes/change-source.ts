// Follows a home's event log for all channels of the tenant in this process, and gives each change to the channels that
// subscribe to it and may read it. There is one reader, however many channels there are.
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { reasons } from '../protocol/reasons.ts'
import { LogFollower } from '../log-follower.ts'
import { typeFor, type ChangeEvent } from './change-event.ts'
import { meetsConditions, openMatches, type PatternMatch } from './match-filter.ts'
import { MatchResults } from './match-patterns.ts'
import { readChanges } from './read-changes.ts'
import { inStorageSchema, storageFacts, storageSourceOf, storageSources } from './storage-schema.ts'
import type { Subscription } from './subscription.ts'
import type { KnownTables, TableFacts } from './table-facts.ts'

/** A channel that receives changes. */
export interface Subscriber {
  readonly subscriptions: readonly Subscription[]
  /** The caller whose rights decide. */
  readonly context: RlsContext
  /** Delivers a change for some of its subscriptions. `encode` shares what equal subscribers receive. */
  deliver(change: ChangeEvent, subscriptions: readonly Subscription[], encode: ChangeEncoder): void
  /** Ends the subscription, because changes were lost. The client may subscribe again. */
  lose(reason: string): void
  /** Ends the subscription for good. */
  end(reason: string): void
}

/** Makes what a subscriber receives, once for all that receive the same. */
export type ChangeEncoder = <T>(key: string, make: (facts: TableFacts) => T) => T

interface Following {
  /** The last event that the subscriber does not receive; undefined while it is not known yet. */
  after: bigint | undefined
  /** Changes that arrived while `after` was not known. */
  held: { seq: bigint; deliver: () => void }[]
}

interface ChangeSourceOptions {
  /** Returns the tenant as it is now; undefined after it was deleted. */
  tenantNow: () => Tenant | undefined
  tables: KnownTables
  onError: (error: Error) => void
}

const lost = 'Changes were deleted before they could be sent. Read the current state again.'
const slowPattern = 'Matching a pattern of a filter takes too long.'

/** The number of subscriptions that are checked, and of deliveries, before others have their turn. */
const checksPerTurn = 500
const deliveriesPerTurn = 500

export class ChangeSource {
  readonly #tables: KnownTables
  readonly #subscribers = new Map<Subscriber, Following>()
  readonly #log: LogFollower

  constructor({ tables, ...options }: ChangeSourceOptions) {
    this.#tables = tables
    this.#log = new LogFollower({
      ...options,
      sequence: 'event_log_seq_seq',
      read: (tenant, after, upTo) => this.#readPage(tenant, after, upTo),
    })
  }

  /**
   * Adds a subscriber, which receives every change that is committed from now on.
   * @param onReady called when that is so, before the first change
   * @throws RoundTripError, RuntimeError when the database does not respond
   */
  async add(subscriber: Subscriber, onReady: () => void): Promise<void> {
    const following: Following = { after: undefined, held: [] }
    this.#subscribers.set(subscriber, following)
    try {
      const after = await this.#log.start()
      following.after = after
      onReady()
      for (const { seq, deliver } of following.held.splice(0)) if (seq > after) deliver()
    } catch (error) {
      this.remove(subscriber)
      throw error
    }
  }

  remove(subscriber: Subscriber): void {
    this.#subscribers.delete(subscriber)
    if (this.#subscribers.size === 0) this.#log.stop()
  }

  /** Notifies the source that new events may have been written. */
  notify(): void {
    this.#log.notify()
  }

  /** Reads and distributes a page. Returns the position after it. */
  async #readPage(tenant: Tenant, after: bigint, upTo: bigint): Promise<bigint> {
    const page = await readChanges(tenant, after, upTo, this.#wantedTables())
    if (after < page.deletedUpTo) {
      for (const subscriber of [...this.#subscribers.keys()]) subscriber.lose(reasons.changesLost(lost))
      return upTo
    }
    const facts = await this.#factsOf(tenant, page.changes)
    for (const change of page.changes) {
      const known = facts.get(change.table)
      if (known !== undefined) await this.#distribute(tenant, change, known)
      const shown = inStorageSchema(change)
      const described = shown === undefined ? undefined : storageFacts(shown.table)
      if (shown !== undefined && described !== undefined) await this.#distribute(tenant, shown, described)
    }
    return page.isLast ? upTo : (page.changes.at(-1)?.seq ?? upTo)
  }

  /** Returns the tables with subscriptions; undefined for all. */
  #wantedTables(): string[] | undefined {
    const tables = new Set<string>()
    for (const { subscriptions } of this.#subscribers.keys())
      for (const { source, table } of subscriptions) {
        if (table !== undefined) tables.add(source === 'storage' ? storageSourceOf(table) : table)
        else if (source !== 'storage') return undefined
        else for (const name of storageSources) tables.add(name)
      }
    return [...tables]
  }

  async #factsOf(tenant: Tenant, changes: readonly ChangeEvent[]): Promise<ReadonlyMap<string, TableFacts>> {
    const facts = new Map<string, TableFacts>()
    for (const { table, record } of changes) {
      // A table whose events were switched off meanwhile is no longer described.
      const known = await this.#tables.get(tenant, table, Object.keys(record ?? {}))
      if (known !== undefined) facts.set(table, known)
    }
    return facts
  }

  /** Gives a change to its subscribers. Others have their turn in between. */
  async #distribute(tenant: Tenant, change: ChangeEvent, facts: TableFacts): Promise<void> {
    const wanting: Wanting[] = []
    let checked = 0
    for (const [subscriber, following] of this.#subscribers) {
      checked += subscriber.subscriptions.length
      if (checked >= checksPerTurn) {
        checked = 0
        await nextTurn()
      }
      const type = typeFor(change, subscriber.context)
      if (type === undefined) continue
      const received = type === change.type ? change : { ...change, type }
      const wanted = wantedOf(received, subscriber)
      if (wanted.length > 0) wanting.push({ subscriber, following, received, wanted })
    }
    const results = new MatchResults()
    await results.add(
      tenant,
      wanting.flatMap(({ wanted }) => wanted.flatMap(({ matches }) => matches)),
    )
    const encode = createEncoder(facts)
    for (const [n, { subscriber, following, received, wanted }] of wanting.entries()) {
      if (n % deliveriesPerTurn === deliveriesPerTurn - 1) await nextTurn()
      // It may have left meanwhile.
      if (this.#subscribers.get(subscriber) !== following) continue
      if (wanted.some(({ matches }) => matches.some((match) => results.get(match) === 'failed'))) {
        subscriber.end(reasons.changesEnded(slowPattern))
        continue
      }
      const matched = wanted.filter(({ matches }) => matches.every((match) => results.get(match) !== match.isNegated))
      if (matched.length === 0) continue
      const { seq } = change
      const subscriptions = matched.map(({ subscription }) => subscription)
      const deliver = () => subscriber.deliver(received, subscriptions, encode)
      if (following.after === undefined) following.held.push({ seq, deliver })
      else if (seq > following.after) deliver()
    }
  }
}

/** A subscriber that receives a change, in the form that it has for this one. */
interface Wanting {
  subscriber: Subscriber
  following: Following
  received: ChangeEvent
  wanted: readonly Wanted[]
}

/** A subscription that receives a change if these patterns match. */
interface Wanted {
  subscription: Subscription
  matches: readonly PatternMatch[]
}

/** Returns the subscriptions that a change is for, apart from their patterns. */
function wantedOf(change: ChangeEvent, subscriber: Subscriber): Wanted[] {
  return subscriber.subscriptions.flatMap((subscription) => {
    if (!isWanted(change, subscription)) return []
    const matches = openMatches(change.record ?? {}, subscription.filter)
    return matches === undefined ? [] : [{ subscription, matches }]
  })
}

/** Lets other work of the process have its turn. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Whether a subscription is for a change, apart from the rights of its subscriber and from patterns. */
function isWanted(change: ChangeEvent, { type, source, table, filter }: Subscription): boolean {
  return (
    (type === '*' || type === change.type) &&
    isFromSource(change, source, table) &&
    meetsConditions(change.record ?? {}, filter)
  )
}

/** Whether a change is of the table, or of one of the schema's tables. All tables contain each file once. */
function isFromSource(change: ChangeEvent, source: Subscription['source'], table: string | undefined): boolean {
  if (source !== '*' && source !== change.schema) return false
  if (table !== undefined) return table === change.table
  return change.schema === 'storage' || !storageSources.has(change.table)
}

function createEncoder(facts: TableFacts): ChangeEncoder {
  const made = new Map<string, unknown>()
  return <T>(key: string, make: (facts: TableFacts) => T): T => {
    if (!made.has(key)) made.set(key, make(facts))
    return made.get(key) as T
  }
}
