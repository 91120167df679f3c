// One WebSocket of a client: reads its messages, and sends it those of its channels.
import type { Writable } from 'node:stream'
import type { WebSocket } from 'ws'
import { RuntimeError } from '../../errors.ts'
import { encode, type Frame } from '../protocol/encode.ts'
import {
  broadcastOf,
  FrameError,
  isObject,
  readFrame,
  type ClientFrame,
  type SentBroadcast,
  type Version,
} from '../protocol/frame.ts'
import { authenticateCaller, rejectionOf } from './callers.ts'
import type { Caller, Channel, ChannelConnection } from './channel.ts'
import { messageLength } from '../messages/message-length.ts'
import { StoreQueue } from '../messages/store-queue.ts'
import { storeMessage } from '../messages/stored-messages.ts'
import { joinChannel, JoinRejection } from './join.ts'
import { maxBufferedBytes, maxChannels, maxSilence } from './limits.ts'
import { Rate } from './rate.ts'
import { closings, reasons, truncated, type Closing } from '../protocol/reasons.ts'
import type { HubConnection, TenantHub } from './tenant-hub.ts'
import { nameOf } from '../protocol/topic-name.ts'
import { looksLikeToken } from '../../tenancy/authenticate.ts'
import { mayJoin, NoMessagesTableError, readTopicRights, RejectedRowError } from '../messages/topic-rights.ts'

interface ConnectionOptions {
  socket: WebSocket
  /** The stream to which the WebSocket writes. */
  stream: Writable
  hub: TenantHub
  version: Version
  /** The owner of the connection's key. */
  caller: Caller
}

/** Milliseconds for which a client may take to confirm the end of its connection. */
const closeTimeout = 5_000
/** The maximum bytes of an entry of presence. */
const maxPresenceBytes = 16_384

export class Connection implements ChannelConnection, HubConnection {
  readonly version: Version
  readonly hub: TenantHub
  readonly #socket: WebSocket
  readonly #stream: Writable
  readonly #channels = new Map<string, Channel>()
  /** The joins in progress by topic. Only the last one of a topic counts. */
  readonly #joins = new Map<string, symbol>()
  readonly #messages: Rate
  readonly #frames: Rate
  readonly #storing = new StoreQueue()
  #caller: Caller
  #lastSeen: number
  #isClosing = false

  constructor({ socket, stream, hub, version, caller }: ConnectionOptions) {
    this.version = version
    this.hub = hub
    this.#socket = socket
    this.#stream = stream
    this.#caller = caller
    this.#messages = new Rate(hub.limits.messagesOfConnection, hub.deps.elapsed)
    this.#frames = new Rate(hub.limits.framesOfConnection, hub.deps.elapsed)
    this.#lastSeen = hub.deps.elapsed()
    socket.on('message', (data: Buffer, isBinary) => this.#receive(data, isBinary))
    socket.on('ping', (data: Buffer) => this.#pong(data))
    socket.on('pong', () => void this.#admit())
    // An error of the protocol closes the socket. No report of it could reach the client.
    socket.on('error', () => undefined)
    socket.on('close', () => this.#end())
  }

  /** The owner of the connection's key. */
  get caller(): Caller {
    return this.#caller
  }

  send({ data, isBinary }: Frame): void {
    if (this.#isClosing) return
    const { messages } = this.hub.deps
    messages.hold(this.#stream)
    this.#socket.send(data, { binary: isBinary })
    if (this.#socket.bufferedAmount <= maxBufferedBytes) return
    // Only what the client does not read counts, not what is held.
    messages.write()
    if (this.#socket.bufferedAmount > maxBufferedBytes) this.close(closings.slowReader)
  }

  deliver(frame: Frame): void {
    if (this.#isClosing) return
    this.hub.count(1)
    this.send(frame)
  }

  /** Removes a channel that has ended. */
  drop(channel: Channel): void {
    this.hub.leave(channel)
    if (this.#has(channel)) this.#channels.delete(channel.topic.name)
  }

  /** Ends all channels and the connection. */
  close({ code, reason, isForChannels }: Closing): void {
    if (isForChannels) for (const channel of this.#channels.values()) channel.pushError(reason)
    // A client that does not read what is sent to its channels is disconnected for that reason.
    if (this.#isClosing) return
    this.#isClosing = true
    this.#leaveAll()
    this.#socket.close(code, truncated(reason))
    const timer = setTimeout(() => this.#socket.terminate(), closeTimeout)
    this.#socket.once('close', () => clearTimeout(timer))
  }

  sweep(): void {
    const { now, elapsed } = this.hub.deps
    const at = now()
    if (elapsed() - this.#lastSeen > maxSilence) this.close(closings.noHeartbeat)
    if ((this.#caller.expiresAt ?? Infinity) <= at) this.close(closings.keyRevoked)
    for (const channel of [...this.#channels.values()])
      if ((channel.caller.expiresAt ?? Infinity) <= at) channel.end(reasons.tokenExpired)
  }

  async checkCredentials(): Promise<void> {
    try {
      this.#caller = await this.#authenticate(this.#caller.credential)
    } catch (error) {
      rejectionOf(error)
      this.close(closings.keyRevoked)
      return
    }
    for (const channel of [...this.#channels.values()]) await this.#checkChannel(channel)
  }

  /** Ends a channel whose token is no longer valid. */
  async #checkChannel(channel: Channel): Promise<void> {
    const { credential } = channel.caller
    const isCurrent = () => channel.caller.credential === credential
    try {
      const caller = await this.#authenticate(credential)
      if (isCurrent()) channel.caller = caller
    } catch (error) {
      const reason = rejectionOf(error)
      if (isCurrent() && this.#has(channel)) channel.end(reasons.tokenRevoked(reason))
    }
  }

  #has(channel: Channel): boolean {
    return this.#channels.get(channel.topic.name) === channel
  }

  #authenticate(credential: string): Promise<Caller> {
    return authenticateCaller(this.hub.deps.authenticator, this.hub.tenant, credential)
  }

  #receive(data: Buffer, isBinary: boolean): void {
    if (!this.#admit()) return
    this.#lastSeen = this.hub.deps.elapsed()
    try {
      this.#handle(readFrame(this.version, data, isBinary))
    } catch (error) {
      if (error instanceof FrameError) this.close({ code: error.closeCode, reason: `InvalidFrame: ${error.message}` })
      else this.#fail(error)
    }
  }

  /** Whether one more frame may be handled. Too many end the connection. */
  #admit(): boolean {
    if (this.#isClosing) return false
    if (this.#frames.take() && this.hub.rates.frames.take()) return true
    this.close(closings.tooManyFrames)
    // What it still sends costs no time.
    this.#socket.pause()
    return false
  }

  /** Responds to a ping, which costs time as other frames do. */
  #pong(data: Buffer): void {
    if (!this.#admit()) return
    this.#socket.pong(data)
    if (this.#socket.bufferedAmount > maxBufferedBytes) this.close(closings.slowReader)
  }

  #fail(cause: unknown): void {
    this.hub.deps.onError(new Error('A realtime connection failed.', { cause }))
    this.close(closings.failed)
  }

  #handle(frame: ClientFrame): void {
    const { topic, event } = frame
    if (topic === 'phoenix' && event === 'heartbeat') this.#reply(frame, 'ok', {})
    else if (event === 'phx_join') void this.#join(frame)
    else if (event === 'phx_leave') this.#leave(frame)
    else {
      const channel = this.#channels.get(topic)
      if (channel === undefined) this.#reject(frame, reasons.notJoined)
      // A message for a former channel of the topic is dropped.
      else if (frame.joinRef === null || frame.joinRef === channel.joinRef) this.#handleInChannel(frame, channel)
    }
  }

  #handleInChannel(frame: ClientFrame, channel: Channel): void {
    switch (frame.event) {
      case 'broadcast':
        this.#broadcast(frame, channel)
        break
      case 'presence':
        this.#presence(frame, channel)
        break
      case 'access_token':
        void this.#renew(frame, channel)
        break
      default:
        this.#reject(frame, reasons.unknownEvent(frame.event))
    }
  }

  /** Joins a topic. Never throws. */
  async #join(frame: ClientFrame): Promise<void> {
    const { hub } = this
    const { topic } = frame
    const hasRoom = this.#channels.has(topic) || this.#channels.size + this.#joins.size < maxChannels
    if (!hasRoom) this.#reject(frame, reasons.tooManyChannels(maxChannels))
    else if (!hub.rates.joins.take()) this.#reject(frame, reasons.tooManyJoins(hub.limits.joins))
    else await this.#tryJoin(frame)
  }

  async #tryJoin(frame: ClientFrame): Promise<void> {
    const { topic } = frame
    const join = Symbol(topic)
    const { tenant } = this.hub
    this.#joins.set(topic, join)
    const isCurrent = () => this.#joins.get(topic) === join && !this.#isClosing
    try {
      await joinChannel(this, frame, {
        isCurrent,
        onJoined: (channel, response) => {
          this.#joins.delete(topic)
          this.#replace(channel)
          this.#reply(frame, 'ok', response)
          // A rotation during the join has not checked this channel.
          if (this.hub.tenant !== tenant) this.#checkChannel(channel).catch((cause: unknown) => this.#fail(cause))
        },
      })
    } catch (error) {
      if (!(error instanceof JoinRejection)) this.#fail(error)
      else if (isCurrent()) {
        this.#joins.delete(topic)
        this.#reject(frame, error.message)
      }
    }
  }

  /** Adds a channel. The former channel of the topic ends. */
  #replace(channel: Channel): void {
    const former = this.#channels.get(channel.topic.name)
    if (former !== undefined) {
      former.push('phx_close', {})
      this.hub.leave(former)
    }
    this.#channels.set(channel.topic.name, channel)
  }

  #leave(frame: ClientFrame): void {
    const channel = this.#channels.get(frame.topic)
    this.#joins.delete(frame.topic)
    this.#reply(frame, 'ok', {})
    if (channel === undefined || (frame.joinRef !== null && frame.joinRef !== channel.joinRef)) return
    channel.push('phx_close', {})
    this.drop(channel)
  }

  #broadcast(frame: ClientFrame, channel: Channel): void {
    const { hub } = this
    const { messages, payloadBytes } = hub.limits
    const broadcast = frame.broadcast ?? broadcastOf(frame.payload)
    if (broadcast === undefined)
      this.#reject(frame, reasons.invalidPayload('A broadcast must have "event", which is a string.'))
    else if (!this.#messages.take() || !hub.rates.messages.take())
      channel.endWith(reasons.tooManyMessages(messages), 'phx_error')
    else if (messageLength(broadcast) > payloadBytes) this.#warn(frame, channel, reasons.payloadTooLarge(payloadBytes))
    else if (broadcast.storedFor !== undefined) {
      const { storedFor } = broadcast
      const isAdded = this.#storing.add(broadcast.length, () => this.#store(frame, channel, broadcast, storedFor))
      if (!isAdded) this.#reject(frame, reasons.queueFull)
    } else if (channel.rights.broadcast.write) {
      if (!channel.broadcast(broadcast)) {
        this.#warn(frame, channel, reasons.queueFull)
        return
      }
      hub.count(1)
      if (channel.config.ack) this.#reply(frame, 'ok', {})
    }
  }

  /** Stores a broadcast, whose reply states the result even without `ack`. Never throws. */
  async #store(
    frame: ClientFrame,
    channel: Channel,
    { event, content }: SentBroadcast,
    seconds: number,
  ): Promise<void> {
    const { topic, context } = channel
    if (!topic.isPrivate || content.kind !== 'json') {
      this.#reject(frame, reasons.invalidPayload('Only JSON on private channels can be stored.'))
      return
    }
    try {
      const isStored = await storeMessage(this.hub.tenant, context, nameOf(topic.name), event, content.text, seconds)
      if (isStored) {
        this.hub.count(1)
        this.#reply(frame, 'ok', {})
      } else this.#reject(frame, reasons.notWritable)
      this.hub.notify()
    } catch (error) {
      if (error instanceof NoMessagesTableError) this.#reject(frame, reasons.noMessagesTable)
      else if (error instanceof RejectedRowError) this.#reject(frame, reasons.notStorable(error.message))
      else this.#reject(frame, reasons.databaseUnavailable)
    }
  }

  #presence(frame: ClientFrame, channel: Channel): void {
    const { hub } = this
    const { event, payload } = isObject(frame.payload) ? frame.payload : {}
    if (!hub.rates.presences.take()) channel.endWith(reasons.tooManyPresences(hub.limits.presences), 'phx_error')
    else if (!channel.rights.presence.write)
      this.#reject(frame, reasons.unauthorized('The policies do not allow presence on this topic.'))
    else if (event === 'untrack') {
      hub.count(1)
      channel.untrack()
      this.#reply(frame, 'ok', {})
    } else if (event !== 'track' || !isObject(payload)) this.#reject(frame, reasons.invalidPresence)
    else if (Buffer.byteLength(JSON.stringify(payload)) > maxPresenceBytes)
      this.#reject(frame, reasons.payloadTooLarge(maxPresenceBytes))
    else if (!channel.track(payload)) this.#reject(frame, reasons.presenceFull)
    else {
      hub.count(1)
      this.#reply(frame, 'ok', {})
    }
  }

  /** Uses a new token of the channel's user. */
  async #renew({ payload }: ClientFrame, channel: Channel): Promise<void> {
    const token = isObject(payload) ? payload['access_token'] : undefined
    if (typeof token !== 'string' || token === channel.newestCredential || !looksLikeToken(token)) return
    channel.newestCredential = token
    const { tenant } = this.hub
    const isCurrent = () => channel.newestCredential === token && this.#has(channel)
    try {
      const caller = await this.#authenticate(token)
      const { topic } = channel
      const rights = topic.isPrivate
        ? await readTopicRights(this.hub.tenant, caller.context, nameOf(topic.name))
        : channel.rights
      if (!isCurrent()) return
      channel.rights = rights
      channel.caller = caller
      if (!mayJoin(rights)) channel.end(reasons.notReadable)
      else if (this.hub.tenant !== tenant) await this.#checkChannel(channel)
    } catch (error) {
      if (!isCurrent()) return
      if (error instanceof RuntimeError && error.status < 500) channel.end(reasons.tokenRevoked(error.message))
      else if (error instanceof RejectedRowError) channel.end(reasons.rightsUnknown(error.message))
      // The client joins again, with its newest token.
      else channel.lose(reasons.databaseUnavailable)
    }
  }

  /** Reports an error to a client that may not expect a reply. */
  #warn(frame: ClientFrame, channel: Channel, reason: string): void {
    if (channel.config.ack) this.#reject(frame, reason)
    else channel.pushError(reason)
  }

  #reject(frame: ClientFrame, reason: string): void {
    this.#reply(frame, 'error', { reason })
  }

  #reply({ joinRef, ref, topic }: ClientFrame, status: 'ok' | 'error', response: object): void {
    if (ref === null) return
    this.send(
      encode(this.version, { joinRef, ref, topic, event: 'phx_reply', payload: JSON.stringify({ status, response }) }),
    )
  }

  #leaveAll(): void {
    this.#joins.clear()
    for (const channel of this.#channels.values()) this.hub.leave(channel)
    this.#channels.clear()
  }

  #end(): void {
    this.#isClosing = true
    this.#leaveAll()
  }
}
