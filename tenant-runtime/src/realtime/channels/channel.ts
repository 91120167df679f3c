// A channel: one topic that one connection has joined, with the rights of its user.
import type { RlsContext } from '../../tenancy/rls-context.ts'
import { changeText, type ChangeEvent } from '../changes/change-event.ts'
import type { ChangeEncoder, Subscriber } from '../changes/change-source.ts'
import type { Subscription } from '../changes/subscription.ts'
import { encode, encodeBroadcast, FrameByVersion, type Frame } from '../protocol/encode.ts'
import type { SentBroadcast, Version } from '../protocol/frame.ts'
import type { JoinConfig } from '../protocol/join-config.ts'
import { nameOf } from '../protocol/topic-name.ts'
import type { Member, Topic } from './topic.ts'
import type { Replay } from '../messages/replay.ts'
import { toBroadcast } from '../messages/stored-messages.ts'
import type { TopicRights } from '../messages/topic-rights.ts'

/** The credentials of a channel's user. */
export interface Caller {
  /** The key or token. */
  credential: string
  context: RlsContext
  /** The time in milliseconds since the epoch at which the token expires; undefined for a key. */
  expiresAt: number | undefined
}

/** The connection as its channels use it. */
export interface ChannelConnection {
  readonly version: Version
  send(frame: Frame): void
  /** Sends a message of a channel, which counts for the tenant's usage. */
  deliver(frame: Frame): void
  /** Removes the channel from the connection. */
  drop(channel: Channel): void
}

interface ChannelOptions {
  connection: ChannelConnection
  topic: Topic<Channel>
  joinRef: string | null
  config: JoinConfig
  caller: Caller
  rights: TopicRights
  subscriptions: readonly Subscription[]
  /** The key of the channel's presence. */
  presenceKey: string
}

export class Channel implements Member, Subscriber {
  readonly topic: Topic<Channel>
  readonly joinRef: string | null
  readonly config: JoinConfig
  readonly subscriptions: readonly Subscription[]
  /** Infinity until the client knows that it has joined: until then the channel receives nothing. */
  joinedAt = Infinity
  caller: Caller
  rights: TopicRights
  /** The newest token that the client has sent, which may still be checked. */
  newestCredential: string
  readonly #connection: ChannelConnection
  readonly #presenceKey: string
  readonly #replayed = new Set<bigint>()
  /** The oldest stored message that the channel may receive. */
  #oldest = 0n

  constructor(options: ChannelOptions) {
    this.topic = options.topic
    this.joinRef = options.joinRef
    this.config = options.config
    this.subscriptions = options.subscriptions
    this.caller = options.caller
    this.newestCredential = options.caller.credential
    this.rights = options.rights
    this.#connection = options.connection
    this.#presenceKey = options.presenceKey
  }

  get context(): RlsContext {
    return this.caller.context
  }

  get followsPresence(): boolean {
    return this.config.presence.isFollowed && this.rights.presence.read
  }

  get followsBroadcasts(): boolean {
    return this.rights.broadcast.read
  }

  /** Receives a broadcast or a difference of presence. */
  receive(frames: FrameByVersion): void {
    const frame = frames.get(this.#connection.version)
    if (frame !== undefined) this.#connection.deliver(frame)
  }

  /** Sends a broadcast to the topic. Returns false when too many messages wait. */
  broadcast(broadcast: SentBroadcast): boolean {
    return this.topic.broadcast(broadcast, this.config.self ? undefined : this)
  }

  /** Sets the channel's entry of presence. Returns false when the topic has too many bytes of them. */
  track(payload: Readonly<Record<string, unknown>>): boolean {
    return this.topic.track(this, this.#presenceKey, payload)
  }

  untrack(): void {
    this.topic.untrack(this)
  }

  deliver(change: ChangeEvent, subscriptions: readonly Subscription[], encodeOnce: ChangeEncoder): void {
    const topic = this.topic.name
    const { type } = change
    // Subscriptions that differ in what they show are sent one by one.
    for (const alike of groupedByShape(subscriptions)) {
      const [{ schema: own, select }] = alike
      const schema = change.schema === 'public' ? own : change.schema
      const ids = alike.map(({ id }) => id)
      const frames = encodeOnce(JSON.stringify([topic, ids, type, schema, select]), (facts) => {
        const data = encodeOnce(JSON.stringify([type, schema, select]), () => changeText(change, facts, schema, select))
        const payload = `{"ids":${JSON.stringify(ids)},"data":${data}}`
        return new FrameByVersion((version) => encode(version, { topic, event: 'postgres_changes', payload }))
      })
      const frame = frames.get(this.#connection.version)
      if (frame !== undefined) this.#connection.deliver(frame)
    }
  }

  lose(reason: string): void {
    this.endWith(reason, 'phx_error')
  }

  end(reason: string): void {
    this.endWith(reason, 'phx_close')
  }

  /** Sends an event of the channel itself. */
  push(event: string, payload: object): void {
    const message = { joinRef: this.joinRef, topic: this.topic.name, event, payload: JSON.stringify(payload) }
    this.#connection.send(encode(this.#connection.version, message))
  }

  /** Reports an error to the client. */
  pushError(message: string): void {
    this.#pushSystem('error', message, 'system')
  }

  /** Reports that changes flow from now on. */
  pushSubscribed(): void {
    this.#pushSystem('ok', 'Subscribed to PostgreSQL', 'postgres_changes')
  }

  /** Reports that broadcasts from SQL and changes flow from now on. */
  pushReady(): void {
    this.#pushSystem('ok', 'Replication connection established', 'system')
  }

  /** Sends stored messages to this channel only. When they are sent to the topic later, the channel does not receive them again. */
  replay({ messages, oldest }: Replay): void {
    this.#oldest = oldest
    for (const message of messages) {
      this.#replayed.add(message.id)
      if (message.payload === undefined) continue
      const broadcast = toBroadcast(message, message.payload, true)
      const frame = encodeBroadcast(this.#connection.version, this.topic.name, broadcast)
      if (frame !== undefined) this.#connection.deliver(frame)
    }
  }

  skips(id: bigint): boolean {
    return this.#replayed.has(id) || id < this.#oldest
  }

  /** Ends the channel. After `phx_error` the client joins again, after `phx_close` it does not. */
  endWith(reason: string, event: 'phx_error' | 'phx_close'): void {
    this.pushError(reason)
    this.push(event, {})
    this.#connection.drop(this)
  }

  #pushSystem(status: 'ok' | 'error', message: string, extension: string): void {
    this.push('system', { extension, status, message, channel: nameOf(this.topic.name) })
  }
}

function groupedByShape(subscriptions: readonly Subscription[]): [Subscription, ...Subscription[]][] {
  const groups = new Map<string, [Subscription, ...Subscription[]]>()
  for (const subscription of subscriptions) {
    const shape = JSON.stringify([subscription.schema, subscription.select])
    const group = groups.get(shape)
    if (group === undefined) groups.set(shape, [subscription])
    else group.push(subscription)
  }
  return [...groups.values()]
}
