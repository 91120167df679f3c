// A tenant of the chaos test: its users and their channels, what was sent to them, and what had to arrive and did not.
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Chance } from '#test/simulation/chance.ts'
import { signToken } from '#test/support/sign-token.ts'
import { ChaosClient, type ChannelOptions, type ChaosChannel, type Outcome, type Session } from './chaos-client.ts'
import { collections, readCollections, tryFetch, type Collection, type TenantAddress } from './chaos-address.ts'
import { Replica } from './replica.ts'

/** Something that was sent. */
interface Message {
  /** Different for all messages of all tenants. */
  id: string
  number: number
  /** The topic on which it arrives. */
  topic: string
  /** The user whose connection sent it; undefined when it was sent by HTTP. */
  sender: User | undefined
  /** The user whose connection sent it, and receives it too, because it is stored. */
  storedBy: User | undefined
  /** The time at which it was sent, of `performance.now`. */
  sentAt: number
  outcome: Outcome
  /** The time at which the outcome was known. */
  endedAt: number
  mayRead: (user: User) => boolean
}

interface User {
  /** `team.number`. */
  id: string
  token: string
  client: ChaosClient
  /** The user's view of the collections. */
  replica: Replica
  /** The stored messages that have arrived, over all sessions. */
  stored: Set<string>
}

/** The order of what has arrived on a session. */
interface Arrived {
  /** The last number by sender or record. */
  lastNumbers: Map<unknown, number>
  /** The time of the message that was sent last. */
  lastSentAt: number
}

const changesTopic = 'realtime:changes'
const lobby = 'realtime:lobby'
const teamTopic = (team: string) => `realtime:team:${team}`
const ownTopic = (id: string) => `realtime:user:${id}`
const teamOf = (id: string) => id.split('.')[0] ?? ''
const usersOfTeam = 5

export class ChaosTenant {
  readonly #name: string
  readonly #address: TenantAddress
  readonly #chance: Chance
  readonly #onViolation: (what: string) => void
  readonly #users: User[] = []
  readonly #sent = new Map<string, Message>()
  readonly #deletions = new Map<string, Message>()
  /** The records of each collection whose last change was acknowledged. */
  readonly #records = new Map<Collection, { id: string; owner: User }[]>(collections.map((name) => [name, []]))
  /** The messages since the last checkpoint. */
  #round: Message[] = []
  /** The time of the last checkpoint, in milliseconds since the epoch, until which everything has arrived. */
  #cursor = Date.now()
  readonly #arrived = new WeakMap<Session, Arrived>()
  readonly counts = { sent: 0, acknowledged: 0, received: 0, replayed: 0 }

  constructor(name: string, address: TenantAddress, chance: Chance, onViolation: (what: string) => void) {
    this.#name = name
    this.#address = address
    this.#chance = chance
    this.#onViolation = (what) => onViolation(`${name}: ${what}`)
  }

  /** Connects users, who stay connected. */
  connect(users: number): void {
    const { keys, url } = this.#address
    const ids = Array.from({ length: users }, (_, n) => `${Math.floor(n / usersOfTeam)}.${n % usersOfTeam}`)
    for (const [n, id] of ids.entries()) {
      const exp = Math.floor(Date.now() / 1_000) + 24 * 3_600
      const token = signToken({ sub: id, role: 'authenticated', exp }, keys.jwt_secret)
      const replica = new Replica(() => readCollections(this.#address, token))
      const options = { url, key: keys.publishable_key, token, random: this.#chance.next }
      const user: User = {
        id,
        token,
        replica,
        stored: new Set(),
        client: new ChaosClient({
          ...options,
          channels: this.#channelsOf(() => user, {
            id,
            other: ids[(n + usersOfTeam) % users] ?? '',
            next: ids[(n + 1) % users] ?? '',
          }),
          onViolation: (what) => this.#onViolation(`${id}: ${what}`),
        }),
      }
      this.#users.push(user)
    }
  }

  /** Whether all users have joined all channels, and know the collections. */
  get isSettled(): boolean {
    return this.#users.every(({ client, replica }) => client.isSettled && replica.isLoaded)
  }

  stop(): void {
    for (const { client } of this.#users) client.stop()
  }

  /** Sends something as a random user. Returns whether it was acknowledged; undefined if nothing could be sent. */
  async sendRandom(): Promise<boolean | undefined> {
    const user = this.#chance.pick(this.#users)
    const part = this.#chance.below(100)
    if (part < 30) return this.#sendBroadcast(user, lobby)
    if (part < 50) return this.#sendBroadcast(user, teamTopic(teamOf(user.id)))
    if (part < 75) return this.#sendStored(user)
    if (part < 87) return this.#change(user, 'notes')
    if (part < 95) return this.#change(user, 'posts')
    return this.#sendForbidden(user)
  }

  /** Sends one message of each kind until it is acknowledged. */
  async sendMarkers(): Promise<void> {
    const user = this.#chance.pick(this.#users)
    const sends = [
      () => this.#sendBroadcast(user, lobby),
      () => this.#sendBroadcast(user, teamTopic(teamOf(user.id))),
      () => this.#sendStored(user),
      () => this.#change(user, 'notes'),
      () => this.#change(user, 'posts'),
    ]
    for (const send of sends) while ((await send()) !== true) await pause(100)
  }

  /** Returns what had to arrive since the last checkpoint, and did not. */
  async missing(): Promise<string[]> {
    const missing = this.#users.flatMap((user) =>
      this.#round
        .filter((message) => message.outcome === 'ok' && this.#isMissing(message, user))
        .map(({ id, topic }) => `${id} of ${topic} for ${user.id}`),
    )
    if (missing.length > 0) return missing
    const stored = await readCollections(this.#address, this.#address.keys.secret_key)
    return this.#users.flatMap(({ id, replica }) =>
      replica
        .differences(stored.filter(({ collection, owner }) => collection === 'posts' || owner === id))
        .map((what) => `${what} for ${id}`),
    )
  }

  /** Begins the next round. Everything until now has arrived. */
  checkpoint(): void {
    for (const user of this.#users) for (const channel of user.client.channels) this.#checkGaps(user, channel)
    this.#round = []
    this.#cursor = Date.now()
  }

  #isMissing({ id, topic, sentAt, sender, mayRead }: Message, user: User): boolean {
    if (sender === user || !mayRead(user)) return false
    if (topic === ownTopic(user.id)) return !user.stored.has(id)
    const session = user.client.channels.find(({ options }) => options.topic === topic)?.sessions.at(-1)
    // A session that has ended, or that began later, was not due to receive it.
    return (
      session?.endedAt === undefined && session !== undefined && session.joinedAt < sentAt && !session.received.has(id)
    )
  }

  /**
   * Checks that sessions that ended have no gaps: they received what a connection sent before the last message of it that they
   * received, and everything that was acknowledged before any message that they received was sent.
   */
  #checkGaps(user: User, { options: { topic }, sessions }: ChaosChannel): void {
    for (const session of sessions) {
      const { joinedAt, endedAt, received } = session
      const arrived = this.#arrived.get(session)
      if (endedAt === undefined || arrived === undefined) continue
      const { lastNumbers, lastSentAt } = arrived
      for (const message of this.#round) {
        const { id, sender, storedBy, sentAt, number, outcome, mayRead } = message
        if (message.topic !== topic || sender === user || outcome !== 'ok' || sentAt <= joinedAt || !mayRead(user))
          continue
        const isDue = number < (lastNumbers.get(sender ?? storedBy) ?? 0) || message.endedAt < lastSentAt
        if (isDue && !received.has(id))
          this.#onViolation(`${user.id} received later messages on ${topic}, but not ${id}`)
      }
    }
  }

  #channelsOf(userNow: () => User, { id, other, next }: { id: string; other: string; next: string }): ChannelOptions[] {
    const isPrivate = { private: true, broadcast: { ack: true } }
    const channel = (topic: string, config: object, more: Partial<ChannelOptions> = {}): ChannelOptions => ({
      topic,
      config: () => config,
      isAllowed: true,
      onMessage: (event, payload, joined) => {
        if (event === 'postgres_changes') this.#receiveChange(userNow(), joined, payload['data'] as ChangeData)
        else this.#receive(userNow(), joined, payload as unknown as BroadcastPayload)
      },
      ...more,
    })
    const changes = collections.map((table) => ({ event: '*', schema: 'public', table }))
    const replay = () => ({ ...isPrivate, broadcast: { ack: true, replay: { since: this.#cursor, limit: 25 } } })
    return [
      channel(lobby, { broadcast: { ack: true } }),
      channel(teamTopic(teamOf(id)), isPrivate),
      channel(ownTopic(id), {}, { config: replay }),
      channel(changesTopic, { postgres_changes: changes }, { onJoined: () => void userNow().replica.subscribed() }),
      // A public topic with the name of another user's private one receives nothing.
      channel(ownTopic(next), {}),
      channel(teamTopic(teamOf(other)), isPrivate, { isAllowed: false }),
      channel(ownTopic(other), isPrivate, { isAllowed: false }),
    ]
  }

  #receive(user: User, channel: ChaosChannel, { payload, meta }: BroadcastPayload): void {
    const { topic } = channel.options
    if (meta?.replayed === true) this.counts.replayed++
    const message = this.#record(user, channel, payload.id)
    if (message === undefined) return
    if (message.topic === ownTopic(user.id)) user.stored.add(message.id)
    this.#checkOrder(channel, message.sender ?? message.storedBy, message)
    if (message.topic !== topic) this.#onViolation(`${message.id} of ${message.topic} arrived on ${topic}`)
  }

  #receiveChange(user: User, channel: ChaosChannel, { type, table, record, old_record: old }: ChangeData): void {
    const id = record?.id ?? old?.id ?? ''
    const message = this.#record(user, channel, record?.message ?? this.#deletions.get(id)?.id ?? id)
    if (message === undefined) return
    this.#checkOrder(channel, id, message)
    const stored = record && { collection: table, id, owner: record.owner_id, message: record.message }
    user.replica.apply({ collection: table, id, record: type === 'DELETE' ? undefined : stored })
  }

  /** Records that a message has arrived. Returns undefined for one that must not arrive. */
  #record(user: User, channel: ChaosChannel, id: string): Message | undefined {
    const { topic } = channel.options
    const message = this.#sent.get(id)
    const session = channel.sessions.at(-1)
    this.counts.received++
    if (message === undefined)
      this.#onViolation(`${user.id} received ${id} on ${topic}, which was not sent to this tenant`)
    else if (!message.mayRead(user)) this.#onViolation(`${user.id} received ${id} of ${message.topic} on ${topic}`)
    else if (session?.received.has(id) === true) this.#onViolation(`${user.id} received ${id} on ${topic} twice`)
    else {
      session?.received.add(id)
      return message
    }
    return undefined
  }

  /**
   * Checks that what a connection sent, and the changes of a record, arrive in their order, and everything on a channel after
   * what was acknowledged before it was sent.
   */
  #checkOrder({ sessions, options }: ChaosChannel, source: unknown, message: Message): void {
    const session = sessions.at(-1)
    if (session === undefined) return
    const { id, number, sentAt, endedAt } = message
    const arrived = this.#arrived.get(session) ?? { lastNumbers: new Map(), lastSentAt: -Infinity }
    this.#arrived.set(session, arrived)
    const { lastNumbers, lastSentAt } = arrived
    if ((lastNumbers.get(source) ?? 0) > number || endedAt < lastSentAt)
      this.#onViolation(`${id} arrived late on ${options.topic}`)
    if (source !== undefined) lastNumbers.set(source, number)
    arrived.lastSentAt = Math.max(lastSentAt, sentAt)
  }

  #sendBroadcast(user: User, topic: string): Promise<boolean | undefined> {
    const mayRead = (reader: User) => topic === lobby || topic === teamTopic(teamOf(reader.id))
    if (this.#chance.happens(0.2)) {
      const isPrivate = topic !== lobby
      return this.#send({ topic, mayRead }, ({ id }) => this.#post(user, topic, `private=${isPrivate}`, id))
    }
    const channel = joined(user, topic)
    if (channel === undefined) return Promise.resolve(undefined)
    return this.#send({ topic, mayRead, sender: user }, ({ id }) => user.client.broadcast(channel, 'said', { id }))
  }

  #sendStored(user: User): Promise<boolean | undefined> {
    const isSocket = this.#chance.happens(0.5)
    const mates = this.#users.filter(({ id }) => teamOf(id) === teamOf(user.id))
    const reader = isSocket ? user : this.#chance.pick(mates)
    const topic = ownTopic(reader.id)
    const mayRead = (other: User) => other === reader
    if (!isSocket)
      return this.#send({ topic, mayRead }, ({ id }) => this.#post(user, topic, 'private=true&persist=true', id))
    const channel = joined(user, topic)
    if (channel === undefined) return Promise.resolve(undefined)
    return this.#send({ topic, mayRead, storedBy: user }, ({ id }) => user.client.store(channel, 'said', { id }))
  }

  /** Sends what the policies forbid, and what therefore arrives nowhere. */
  async #sendForbidden(user: User): Promise<undefined | true> {
    const other = this.#chance.pick(this.#users.filter(({ id }) => teamOf(id) !== teamOf(user.id)))
    const topic = this.#chance.pick([ownTopic(other.id), teamTopic(teamOf(other.id))])
    const query = this.#chance.pick(['private=true', 'private=true&persist=true'])
    const isChange = this.#chance.happens(0.3)
    await this.#send({ topic: isChange ? changesTopic : topic, mayRead: () => false }, async ({ id }) => {
      const note = { id: randomUUID(), owner_id: other.id, message: id }
      const outcome = await (isChange
        ? this.#request(user.token, 'POST', '/rest/v1/notes', note)
        : this.#post(user, topic, query, id))
      if (outcome === 'ok') this.#onViolation(`${user.id} was allowed to send ${id} to ${isChange ? other.id : topic}`)
      return outcome
    })
    return true
  }

  /** Inserts, updates or deletes a record of the user. */
  async #change(user: User, collection: Collection): Promise<boolean | undefined> {
    const records = this.#records.get(collection) ?? []
    const at = records.findIndex(({ owner }) => owner === user)
    const options = { topic: changesTopic, mayRead: (reader: User) => collection === 'posts' || reader === user }
    const path = `/rest/v1/${collection}`
    const part = this.#chance.below(10)
    // A record is changed by one request at a time, and no more after one whose outcome is unknown.
    const [record] = at >= 0 && part >= 4 ? records.splice(at, 1) : []
    if (record === undefined) {
      const id = randomUUID()
      const isDone = await this.#send(options, (message) =>
        this.#request(user.token, 'POST', path, { id, owner_id: user.id, message: message.id }),
      )
      if (isDone) records.push({ id, owner: user })
      return isDone
    }
    return this.#send(options, async (message) => {
      if (part >= 8) {
        this.#deletions.set(record.id, message)
        return this.#request(user.token, 'DELETE', `${path}/${record.id}`)
      }
      const outcome = await this.#request(user.token, 'PATCH', `${path}/${record.id}`, { message: message.id })
      if (outcome === 'ok') records.push(record)
      return outcome
    })
  }

  async #send(
    { sender, storedBy, ...options }: Pick<Message, 'topic' | 'mayRead'> & { sender?: User; storedBy?: User },
    send: (message: Message) => Promise<Outcome>,
  ): Promise<boolean> {
    const number = ++this.counts.sent
    const message: Message = {
      ...options,
      sender,
      storedBy,
      id: `${this.#name}-${number}`,
      number,
      sentAt: performance.now(),
      outcome: 'lost',
      endedAt: Infinity,
    }
    this.#sent.set(message.id, message)
    this.#round.push(message)
    message.outcome = await send(message)
    message.endedAt = performance.now()
    if (message.outcome === 'ok') this.counts.acknowledged++
    return message.outcome === 'ok'
  }

  #post(user: User, topic: string, query: string, id: string): Promise<Outcome> {
    const name = encodeURIComponent(topic.slice('realtime:'.length))
    return this.#request(user.token, 'POST', `/realtime/v1/api/broadcast/${name}/events/said?${query}`, { id })
  }

  /** Sends a request that services may fail to serve while they are killed. */
  async #request(token: string, method: string, path: string, body?: object): Promise<Outcome> {
    const response = await tryFetch(this.#address, token, method, path, body)
    if (response === undefined || response.status >= 500) return 'lost'
    if (response.status >= 400 && response.status !== 403 && response.status !== 429)
      this.#onViolation(`${method} ${path}: ${response.status} ${response.text}`)
    return response.status < 300 ? 'ok' : 'error'
  }
}

interface BroadcastPayload {
  payload: { id: string }
  meta?: { replayed?: boolean }
}

interface ChangeData {
  type: string
  table: string
  record?: { id: string; owner_id: string; message: string }
  old_record?: { id: string }
}

/** Returns a channel of a user that is joined now. */
function joined({ client }: User, topic: string): ChaosChannel | undefined {
  return client.channels.find(({ options, state }) => options.topic === topic && state === 'joined')
}
