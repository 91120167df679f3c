// The connections, topics and changes of one tenant in this process.
import type { Writable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { nextCredentialEnd, type Authenticator } from '../../tenancy/authenticate.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { ChangeSource } from '../changes/change-source.ts'
import { KnownTables } from '../changes/table-facts.ts'
import type { SentBroadcast } from '../protocol/frame.ts'
import type { Channel } from './channel.ts'
import { FanOut } from './fan-out.ts'
import { limitsOf, type ChannelLimits } from './limits.ts'
import type { TenantRates } from './tenant-rates.ts'
import { closings, reasons, unservedClosing, type Closing } from '../protocol/reasons.ts'
import { MessageSource } from '../messages/message-source.ts'
import { toBroadcast, type StoredMessage } from '../messages/stored-messages.ts'
import type { RelayedEntry, TopicName } from '../relay/relay-frame.ts'
import type { LocalPresence, RelayedTenant } from '../relay/relayed-tenant.ts'
import type { Relay } from '../relay/relay.ts'
import { topicOf } from '../protocol/topic-name.ts'
import { Topic, type TopicOutlet } from './topic.ts'

/** Counts the messages of tenants for their usage. */
export interface MessageMeter {
  count(tenantId: string, messages: number): void
  /** Holds back what is written to a stream until the counts of this turn of the event loop are on disk. */
  hold(stream: Writable): void
  /** Writes the counts to disk, and releases what is held. */
  write(): void
}

/** The dependencies of a hub. */
export interface HubDeps {
  authenticator: Authenticator
  messages: MessageMeter
  tenantOf: (tenantId: string) => Tenant | undefined
  /** Returns milliseconds since the epoch. */
  now: () => number
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  /** Returns a text that is different for each call, in all processes. */
  newId: () => string
  /** The way to the other runtimes of the same tenants; undefined without any. */
  relay?: Relay | undefined
  onError: (error: Error) => void
}

/** A connection as its hub knows it. */
export interface HubConnection {
  close(closing: Closing): void
  /** Ends what has expired. Called every second. */
  sweep(): void
  /** Ends the connection or the channels whose key or token is no longer valid. */
  checkCredentials(): Promise<void>
}

/** The number of connections that end before others have their turn. */
const closedPerTurn = 100

export class TenantHub implements RelayedTenant {
  readonly deps: HubDeps
  readonly connections = new Set<HubConnection>()
  readonly fanOut = new FanOut<Channel>()
  readonly tables: KnownTables
  readonly changes: ChangeSource
  readonly stored: MessageSource
  readonly rates: TenantRates
  readonly #topics = new Map<string, Topic<Channel>>()
  #tenant: Tenant
  #limits: ChannelLimits
  /** The time in milliseconds since the epoch at which a key or a secret ends next. */
  #credentialEnd: number

  constructor(tenant: Tenant, rates: TenantRates, deps: HubDeps) {
    this.deps = deps
    this.#tenant = tenant
    this.#limits = limitsOf(tenant.limits)
    this.#credentialEnd = nextCredentialEnd(tenant, deps.now())
    this.rates = rates
    rates.change(this.#limits)
    this.tables = new KnownTables(deps.elapsed)
    const tenantNow = () => deps.tenantOf(tenant.id)
    const { onError, elapsed } = deps
    this.changes = new ChangeSource({ tenantNow, tables: this.tables, onError })
    this.stored = new MessageSource({
      tenantNow,
      elapsed,
      onError,
      maxBytes: () => this.#limits.payloadBytes,
      // Each runtime reads the table itself.
      send: (message) => this.#sendStored(message),
    })
  }

  /** The tenant with its newest manifest. */
  get tenant(): Tenant {
    return this.#tenant
  }

  get tenantId(): string {
    return this.#tenant.id
  }

  get limits(): ChannelLimits {
    return this.#limits
  }

  /** Returns a topic, which exists while it has channels or entries of other runtimes. @param name with `realtime:` */
  topic(name: string, isPrivate: boolean): Topic<Channel> {
    const key = topicKey(name, isPrivate)
    const known = this.#topics.get(key)
    if (known !== undefined) return known
    const topic = new Topic(name, isPrivate, this.fanOut, this.deps.newId, this.#outletOf({ topic: name, isPrivate }))
    this.#topics.set(key, topic)
    return topic
  }

  /** Removes a channel from everything that could send to it. */
  leave(channel: Channel): void {
    const { topic } = channel
    this.changes.remove(channel)
    topic.remove(channel)
    this.#deleteEmpty(topic)
  }

  /** Sends a broadcast that came by HTTP to all runtimes. Returns false when too many messages wait in this one. */
  broadcast(name: string, isPrivate: boolean, broadcast: SentBroadcast): boolean {
    const isSent = this.deliver(name, isPrivate, broadcast)
    if (isSent) this.deps.relay?.broadcast(this.tenantId, { topic: name, isPrivate }, broadcast)
    return isSent
  }

  /** Sends a broadcast to the clients of this runtime. Returns false when too many messages wait. */
  deliver(name: string, isPrivate: boolean, broadcast: SentBroadcast): boolean {
    return this.#topics.get(topicKey(name, isPrivate))?.deliver(broadcast) ?? true
  }

  #sendStored(message: StoredMessage): boolean {
    const { isPrivate, payload } = message
    const name = topicOf(message.topic)
    if (payload !== undefined) return this.deliver(name, isPrivate, toBroadcast(message, payload, false))
    this.#topics.get(topicKey(name, isPrivate))?.reportError(reasons.payloadTooLarge(this.#limits.payloadBytes))
    return true
  }

  addRemote({ topic, isPrivate }: TopicName, entry: RelayedEntry): void {
    this.topic(topic, isPrivate).addRemote(entry)
  }

  removeRemote({ topic: name, isPrivate }: TopicName, ref: string): void {
    const topic = this.#topics.get(topicKey(name, isPrivate))
    if (topic === undefined) return
    topic.removeRemote(ref)
    this.#deleteEmpty(topic)
  }

  localPresence(): LocalPresence[] {
    return [...this.#topics.values()].map((topic) => ({
      topic: topic.name,
      isPrivate: topic.isPrivate,
      entries: () => topic.localEntries(),
    }))
  }

  /** Waits until other runtimes send their messages; undefined when they do. A client that joins then misses none. */
  whenSynced(): Promise<void> | undefined {
    return this.deps.relay?.whenSynced(this.tenantId)
  }

  /** Counts messages that clients have sent or receive. */
  count(messages: number): void {
    this.deps.messages.count(this.#tenant.id, messages)
  }

  /** Writes the counts to disk, before a response that acknowledges messages. */
  writeCounts(): void {
    this.deps.messages.write()
  }

  /** Notifies the hub that the tenant's data may have changed. */
  notify(): void {
    this.changes.notify()
    this.stored.notify()
  }

  /** Starts reading for the first client. */
  start(): void {
    this.deps.relay?.attach(this)
  }

  /** Stops reading for clients, when none is connected any more. */
  stop(): void {
    this.deps.relay?.detach(this)
    this.stored.stop()
  }

  /** Uses the tenant's newest manifest, and ends what its keys and secrets no longer allow. */
  async refresh(): Promise<void> {
    const tenant = this.deps.tenantOf(this.#tenant.id)
    const closing = unservedClosing(tenant)
    if (tenant === undefined || closing !== undefined) {
      // Other tenants have their turn in between.
      for (const [n, connection] of [...this.connections].entries()) {
        if (n % closedPerTurn === closedPerTurn - 1) await nextTurn()
        connection.close(closing ?? closings.tenantGone)
      }
      return
    }
    this.#tenant = tenant
    this.#limits = limitsOf(tenant.limits)
    this.#credentialEnd = nextCredentialEnd(tenant, this.deps.now())
    this.rates.change(this.#limits)
    this.tables.clear()
    await this.#checkCredentials()
  }

  /** Ends what has expired, and what uses a key or a secret whose overlap after a rotation has ended. Called every second. */
  async sweep(): Promise<void> {
    for (const connection of this.connections) connection.sweep()
    const now = this.deps.now()
    if (now < this.#credentialEnd) return
    this.#credentialEnd = nextCredentialEnd(this.#tenant, now)
    await this.#checkCredentials()
  }

  async #checkCredentials(): Promise<void> {
    await Promise.all([...this.connections].map((connection) => connection.checkCredentials()))
  }

  #outletOf(topic: TopicName): TopicOutlet | undefined {
    const { relay } = this.deps
    if (relay === undefined) return undefined
    return {
      broadcast: (broadcast) => relay.broadcast(this.tenantId, topic, broadcast),
      presence: (change) => relay.presence(this.tenantId, topic, change),
    }
  }

  #deleteEmpty(topic: Topic<Channel>): void {
    const key = topicKey(topic.name, topic.isPrivate)
    if (topic.isEmpty && this.#topics.get(key) === topic) this.#topics.delete(key)
  }
}

function topicKey(name: string, isPrivate: boolean): string {
  return `${isPrivate ? 'private' : 'public'} ${name}`
}
