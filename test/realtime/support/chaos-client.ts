// A client that stays connected: it connects and joins again after every end, and records what each joined channel received.
import { setTimeout as pause } from 'node:timers/promises'
import { WebSocket } from 'ws'

/** A channel of a client, as it was joined once. */
export interface Session {
  /** The time of the reply to the join, of `performance.now`. */
  joinedAt: number
  /** The time of the end; undefined while the channel is joined. */
  endedAt: number | undefined
  /** The messages that arrived, in order. */
  received: Set<string>
}

export interface ChannelOptions {
  /** The name with `realtime:`. */
  topic: string
  /** Returns the configuration of the next join. */
  config: () => object
  /** Whether the policies allow the client to join. */
  isAllowed: boolean
  /** Called for each message that arrives, and after each join. */
  onMessage: (event: string, payload: Record<string, unknown>, channel: ChaosChannel) => void
  onJoined?: (channel: ChaosChannel) => void
}

export interface ChaosChannel {
  readonly options: ChannelOptions
  joinRef: string | undefined
  /** All of them, the last one last. */
  sessions: Session[]
  state: 'absent' | 'joined' | 'denied'
}

interface ClientOptions {
  /** The tenant's address. */
  url: string
  key: string
  token: string
  channels: readonly ChannelOptions[]
  /** Returns a number of [0, 1) for delays. */
  random: () => number
  /** Reports what must not happen. */
  onViolation: (what: string) => void
}

/** The result of a message: the status of its reply, or `lost` when the connection ended before. */
export type Outcome = 'ok' | 'error' | 'lost'

interface Call {
  topic: string
  settle: (outcome: Outcome, reason: string) => void
}

type Frame = [
  joinRef: string | null,
  ref: string | null,
  topic: string,
  event: string,
  payload: Record<string, unknown>,
]

const heartbeatMs = 25_000
/** The reasons of rejections that decide nothing, and occur while services are killed. */
const passing = /^(DatabaseUnavailable|ClientJoinRateLimitReached)/

export class ChaosClient {
  readonly channels: readonly ChaosChannel[]
  readonly #options: ClientOptions
  readonly #calls = new Map<string, Call>()
  #socket: WebSocket | undefined
  #ref = 0
  #isStopped = false
  #heartbeat: NodeJS.Timeout | undefined

  constructor(options: ClientOptions) {
    this.#options = options
    this.channels = options.channels.map((channel) => ({
      options: channel,
      joinRef: undefined,
      sessions: [],
      state: 'absent',
    }))
    this.#connect()
  }

  /** Whether all channels are joined, and all others were denied. */
  get isSettled(): boolean {
    return this.channels.every(({ state, options }) => state === (options.isAllowed ? 'joined' : 'denied'))
  }

  /** Sends a broadcast on a joined channel. */
  broadcast(channel: ChaosChannel, event: string, payload: object): Promise<Outcome> {
    const { topic } = channel.options
    const message = { type: 'broadcast', event, payload }
    return this.#call(topic, (ref) => JSON.stringify([channel.joinRef ?? null, ref, topic, 'broadcast', message]))
  }

  /** Sends a broadcast that the server stores. */
  store(channel: ChaosChannel, event: string, payload: object): Promise<Outcome> {
    const { topic } = channel.options
    return this.#call(topic, (ref) => {
      const texts = [channel.joinRef ?? '', ref, topic, event, '{"persist":true}']
      const lengths = texts.map((text) => Buffer.byteLength(text))
      return Buffer.concat([Buffer.from([3, ...lengths, 1]), Buffer.from(texts.join('') + JSON.stringify(payload))])
    })
  }

  stop(): void {
    this.#isStopped = true
    this.#socket?.terminate()
  }

  #connect(): void {
    const { url, key, random } = this.#options
    const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/realtime/v1/websocket?apikey=${key}&vsn=2.0.0`)
    this.#socket = socket
    socket.on('open', () => {
      this.#heartbeat = setInterval(() => {
        void this.#call('phoenix', (ref) => JSON.stringify([null, ref, 'phoenix', 'heartbeat', {}]))
      }, heartbeatMs)
      for (const channel of this.channels) void this.#join(channel, socket)
    })
    socket.on('message', (data: Buffer) => this.#receive(JSON.parse(data.toString()) as Frame))
    // The end of the connection follows.
    socket.on('error', () => undefined)
    socket.on('close', () => {
      clearInterval(this.#heartbeat)
      for (const channel of this.channels) end(channel)
      for (const call of [...this.#calls.values()]) call.settle('lost', '')
      if (!this.#isStopped) setTimeout(() => this.#connect(), 100 + random() * 900)
    })
  }

  async #join(channel: ChaosChannel, socket: WebSocket): Promise<void> {
    const { topic, config, isAllowed, onJoined } = channel.options
    const { token, random, onViolation } = this.#options
    while (socket.readyState === WebSocket.OPEN) {
      const payload = { config: config(), access_token: token }
      let joinRef = ''
      let reason = ''
      const outcome = await this.#call(
        topic,
        (ref) => JSON.stringify([(joinRef = ref), ref, topic, 'phx_join', payload]),
        (result, why) => {
          reason = why
          if (result !== 'ok') return
          // The channel is joined before its next message arrives.
          channel.joinRef = joinRef
          channel.state = 'joined'
          channel.sessions.push({ joinedAt: performance.now(), endedAt: undefined, received: new Set() })
          if (!isAllowed) onViolation(`${topic} was joined by a user whom the policies do not allow it`)
          onJoined?.(channel)
        },
      )
      if (outcome !== 'error') return
      if (!passing.test(reason)) {
        channel.state = 'denied'
        if (isAllowed || !reason.startsWith('Unauthorized')) onViolation(`the join of ${topic} was rejected: ${reason}`)
        return
      }
      await pause(100 + random() * 400)
    }
  }

  #call(
    topic: string,
    frame: (ref: string) => string | Buffer,
    onReply: (outcome: Outcome, reason: string) => void = () => undefined,
  ): Promise<Outcome> {
    const socket = this.#socket
    if (socket?.readyState !== WebSocket.OPEN) return Promise.resolve('lost')
    const ref = String(++this.#ref)
    return new Promise((resolve) => {
      const settle: Call['settle'] = (outcome, reason) => {
        this.#calls.delete(ref)
        onReply(outcome, reason)
        resolve(outcome)
      }
      this.#calls.set(ref, { topic, settle })
      socket.send(frame(ref))
    })
  }

  #receive([, ref, topic, event, payload]: Frame): void {
    if (event === 'phx_reply') {
      const { status, response } = payload as { status: 'ok' | 'error'; response: { reason?: string } }
      this.#calls.get(ref ?? '')?.settle(status, response.reason ?? '')
      return
    }
    const channel = this.channels.find(({ options }) => options.topic === topic)
    if (channel === undefined) this.#options.onViolation(`a message of the unknown topic ${topic} arrived`)
    else if (event === 'phx_error') {
      end(channel)
      // The messages that ended the channel get no reply.
      for (const call of [...this.#calls.values()]) if (call.topic === topic) call.settle('lost', '')
      if (this.#socket !== undefined) void this.#join(channel, this.#socket)
    } else if (event === 'phx_close') this.#options.onViolation(`${topic} was closed`)
    else if (event !== 'system') {
      if (channel.state !== 'joined') this.#options.onViolation(`${event} arrived on ${topic}, which is not joined`)
      channel.options.onMessage(event, payload, channel)
    }
  }
}

function end(channel: ChaosChannel): void {
  channel.state = 'absent'
  const session = channel.sessions.at(-1)
  if (session !== undefined) session.endedAt ??= performance.now()
}
