// An unmodified client of a user, who uses all features of channels. It records what arrives, and how its channels end and return.
import { createClient, REALTIME_SUBSCRIBE_STATES, type RealtimeChannel } from '@supabase/supabase-js'
import { signToken } from '#test/support/sign-token.ts'
import { until } from '#test/support/until.ts'
import type { TenantAddress } from './chaos-address.ts'

/** The topics of the policies of `prepareTenant`: that of all users, a team's, and a user's own, whose messages are stored. */
export const lobby = 'lobby'
export const teamTopic = (user: string) => `team:${user.split('.')[0] ?? ''}`
export const ownTopic = (user: string) => `user:${user}`

type ChannelName = 'lobby' | 'team' | 'own' | 'changes'

interface BroadcastMessage {
  payload: { text: string }
  meta?: { id?: string; replayed?: boolean }
}

export class FollowedClient {
  readonly user: string
  readonly client: ReturnType<typeof createClient>
  readonly channels: Readonly<Record<ChannelName, RealtimeChannel>>
  /** Every status of a channel, with its error. */
  readonly statuses: Record<ChannelName, string[]> = { lobby: [], team: [], own: [], changes: [] }
  /** The texts that have arrived, by channel. A stored message that arrives again has the same ID, and is recorded once. */
  readonly received: Record<ChannelName, string[]> = { lobby: [], team: [], own: [], changes: [] }
  readonly #ids = new Set<string>()

  /** Connects and subscribes to all channels. @param user `team.number` */
  constructor({ url, keys }: TenantAddress, user: string) {
    this.user = user
    const exp = Math.floor(Date.now() / 1_000) + 3_600
    const token = signToken({ sub: user, role: 'authenticated', exp }, keys.jwt_secret)
    this.client = createClient(url, keys.publishable_key, { accessToken: async () => token })
    const presence = { key: user }
    const since = Date.now()
    const { client } = this
    this.channels = {
      lobby: this.#recording('lobby', client.channel(lobby, { config: { broadcast: { ack: true }, presence } })),
      team: this.#recording(
        'team',
        client.channel(teamTopic(user), { config: { private: true, broadcast: { ack: true } } }),
      ),
      own: this.#recording(
        'own',
        client.channel(ownTopic(user), {
          config: { private: true, broadcast: { ack: true, replay: { since, limit: 25 } } },
        }),
      ),
      changes: client
        .channel('changes')
        .on('postgres_changes', { event: '*', schema: 'public', table: 'posts' }, ({ eventType, new: record }) =>
          this.received.changes.push(`${eventType} ${'message' in record ? String(record['message']) : ''}`),
        )
        .on('postgres_changes', { event: '*', schema: 'storage', table: 'objects' }, ({ eventType, new: record }) =>
          this.received.changes.push(`${eventType} ${'name' in record ? String(record['name']) : ''}`),
        ),
    }
    this.channels.lobby.on('presence', { event: 'sync' }, () => undefined)
    for (const name of Object.keys(this.channels) as ChannelName[])
      this.channels[name].subscribe((status, error) => {
        this.statuses[name].push(error === undefined ? status : `${status}: ${error.message}`)
        if (status === REALTIME_SUBSCRIBE_STATES.SUBSCRIBED && name === 'lobby')
          void this.channels.lobby.track({ user })
      })
  }

  /** Whether all channels are joined now. */
  get isJoined(): boolean {
    return Object.values(this.statuses).every((list) => list.at(-1) === 'SUBSCRIBED')
  }

  /** The number of times that the connection has ended. */
  get ends(): number {
    return this.statuses.lobby.filter((status) => status !== 'SUBSCRIBED').length
  }

  /** The users whose presence the client sees, sorted. */
  present(): string[] {
    return Object.keys(this.channels.lobby.presenceState()).sort()
  }

  /** Sends a message, again and again until it is acknowledged. */
  async send(name: Exclude<ChannelName, 'changes'>, text: string): Promise<void> {
    const message = { type: 'broadcast', event: 'text', payload: { text } } as const
    await until(async () => (await this.channels[name].send(message)) === 'ok', `the acknowledgement of ${text}`)
  }

  async leave(): Promise<void> {
    await this.client.realtime.disconnect()
  }

  #recording(name: ChannelName, channel: RealtimeChannel): RealtimeChannel {
    return channel.on('broadcast', { event: '*' }, (message) => {
      const { payload, meta } = message as unknown as BroadcastMessage
      if (meta?.id !== undefined) {
        if (this.#ids.has(meta.id)) return
        this.#ids.add(meta.id)
      }
      this.received[name].push(payload.text)
    })
  }
}
