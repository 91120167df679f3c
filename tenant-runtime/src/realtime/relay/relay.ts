// Broadcasts, presence and sign-outs between the runtimes that serve the same tenants: each follows all others over a link of its
// own (docs/decisions/0036-link-between-runtimes.md).
import { isIPv6 } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { InternalToken } from '@tenantry/contract'
import type { WebSocket } from 'ws'
import type { SentBroadcast } from '../protocol/frame.ts'
import { Follower } from './follower.ts'
import { encodeRelayed, encodeText, type PresenceChange, type TopicName } from './relay-frame.ts'
import type { RelayedTenant } from './relayed-tenant.ts'
import { Sibling } from './sibling.ts'

/** A name and a port at which runtimes listen. A name may have several addresses. */
export interface SiblingHost {
  host: string
  port: number
}

export interface RelayOptions {
  /** The runtimes that serve the same tenants. This one may be among them. */
  hosts: readonly SiblingHost[]
  token: InternalToken
  /** A text that no other process has. */
  instance: string
  /** The sessions of developers' consoles that a sign-out has ended. */
  endedSessions: EndedSessions
  /** Returns the addresses of a name. */
  resolve: (host: string) => Promise<readonly string[]>
  onError: (error: Error) => void
}

/** The sessions that a sign-out has ended, at this runtime or at another one. */
export interface EndedSessions {
  /** Returns their IDs. */
  list(): readonly string[]
  /** Receives IDs of another runtime. */
  add(sessions: readonly string[]): void
}

/** The reasons for which a broadcast did not reach the clients of another runtime: its link or its clients' queue was full. */
export const dropReasons = ['link_full', 'queue_full'] as const
export type DropReason = (typeof dropReasons)[number]

/** Milliseconds between two searches for other runtimes, and the minimum after another one has connected. */
const pollMs = 1_000
const minPollMs = 50
/** Milliseconds for which a join waits for the presence of the others. */
const syncMs = 1_000

export class Relay {
  readonly #options: RelayOptions
  readonly #siblings = new Map<string, Sibling>()
  readonly #followers = new Set<Follower>()
  readonly #tenants = new Map<string, RelayedTenant>()
  readonly #dropped = new Map<DropReason, number>(dropReasons.map((reason) => [reason, 0]))
  readonly #waiters = new Set<() => void>()
  #wake: AbortController = new AbortController()
  #isOver = false

  constructor(options: RelayOptions) {
    this.#options = options
  }

  /** The number of broadcasts that did not reach the clients of another runtime, by reason. */
  get dropped(): ReadonlyMap<DropReason, number> {
    return this.#dropped
  }

  /** The number of other runtimes that are known, and of those that this one follows now. */
  get links(): { known: number; open: number } {
    const others = [...this.#siblings.values()].filter(({ isSelf }) => !isSelf)
    return { known: others.length, open: others.filter(({ openInstance }) => openInstance !== undefined).length }
  }

  /** Receives the messages of a tenant, from its first client on. */
  attach(tenant: RelayedTenant): void {
    this.#tenants.set(tenant.tenantId, tenant)
    for (const sibling of this.#siblings.values()) sibling.follow(tenant)
  }

  /** Receives no more messages of a tenant, which has no client any more. */
  detach(tenant: RelayedTenant): void {
    if (this.#tenants.get(tenant.tenantId) !== tenant) return
    this.#tenants.delete(tenant.tenantId)
    for (const sibling of this.#siblings.values()) sibling.unfollow(tenant.tenantId)
  }

  /** Sends a broadcast of this runtime's clients to the others. Never throws. */
  broadcast(tenantId: string, topic: TopicName, broadcast: SentBroadcast): void {
    const followers = this.#followersOf(tenantId)
    if (followers.length === 0) return
    const frame = encodeRelayed(tenantId, topic, broadcast)
    for (const follower of followers) follower.broadcast(tenantId, frame)
  }

  /** Sends a change of this runtime's presence to the others. Never throws. */
  presence(tenantId: string, { topic, isPrivate }: TopicName, change: PresenceChange): void {
    const followers = this.#followersOf(tenantId)
    if (followers.length === 0) return
    const frame = encodeText({ kind: 'presence', tenantId, topic, isPrivate, ...change })
    for (const follower of followers) follower.presence(frame)
  }

  /** Sends the others the ID of a session that a sign-out has ended here. Those that connect later receive it then. */
  endSession(session: string): void {
    for (const follower of this.#followers) follower.endSessions([session])
  }

  /**
   * Waits until the others send a tenant's messages and have sent its presence, for a second at most.
   * @returns undefined when that is so already
   */
  whenSynced(tenantId: string): Promise<void> | undefined {
    const isSynced = () => [...this.#siblings.values()].every((sibling) => sibling.isSynced(tenantId))
    if (isSynced()) return undefined
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer)
        this.#waiters.delete(check)
        resolve()
      }
      const check = () => {
        if (isSynced()) end()
      }
      const timer = setTimeout(end, syncMs)
      this.#waiters.add(check)
    })
  }

  /** Accepts another runtime, which follows this one. */
  accept(socket: WebSocket): void {
    if (this.#isOver) {
      socket.terminate()
      return
    }
    const { instance, endedSessions, onError } = this.#options
    const follower = new Follower({
      socket,
      instance,
      presenceOf: (tenantId) => this.#tenants.get(tenantId)?.localPresence() ?? [],
      endedSessions: endedSessions.list(),
      onDropped: () => this.#drop('link_full'),
      onError,
    })
    this.#followers.add(follower)
    socket.on('close', () => this.#followers.delete(follower))
    // A runtime that has just started listens now.
    this.#wake.abort()
  }

  /** Finds and follows the other runtimes until the signal aborts, and then ends all links. Never throws. */
  async run(signal: AbortSignal): Promise<void> {
    const { onError } = this.#options
    while (!signal.aborted) {
      this.#wake = new AbortController()
      await this.#poll().catch((cause: unknown) => {
        onError(new Error('Other runtimes could not be found.', { cause }))
      })
      await sleep(pollMs, undefined, { signal: AbortSignal.any([signal, this.#wake.signal]) }).catch(() => undefined)
      // Two runtimes that keep accepting each other must not do it without a pause.
      await sleep(minPollMs, undefined, { signal }).catch(() => undefined)
    }
    this.#isOver = true
    for (const sibling of this.#siblings.values()) sibling.close()
    for (const follower of this.#followers) follower.close()
  }

  #followersOf(tenantId: string): Follower[] {
    return [...this.#followers].filter((follower) => follower.follows(tenantId))
  }

  #drop(reason: DropReason): void {
    this.#dropped.set(reason, (this.#dropped.get(reason) ?? 0) + 1)
  }

  async #poll(): Promise<void> {
    const { hosts, resolve } = this.#options
    const found = await Promise.all(
      hosts.map(async ({ host, port }) => {
        const addresses = await resolve(host).catch(() => [])
        return addresses.map((address) => (isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`))
      }),
    )
    const addresses = new Set(found.flat())
    for (const address of addresses) if (!this.#siblings.has(address)) this.#add(address)
    for (const [address, sibling] of this.#siblings) {
      if (addresses.has(address)) sibling.connect()
      else if (sibling.openInstance === undefined) {
        sibling.close()
        this.#siblings.delete(address)
      }
    }
  }

  #add(address: string): void {
    const { token, instance, endedSessions, onError } = this.#options
    const sibling = new Sibling({
      address,
      token,
      instance,
      isFollowed: (other, except) =>
        [...this.#siblings.values()].some((known) => known !== except && known.openInstance === other),
      onChange: () => {
        for (const check of [...this.#waiters]) check()
      },
      onEndedSessions: (sessions) => endedSessions.add(sessions),
      onDropped: () => this.#drop('queue_full'),
      onError,
    })
    this.#siblings.set(address, sibling)
    for (const tenant of this.#tenants.values()) sibling.follow(tenant)
  }
}
