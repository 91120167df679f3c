// One topic of a tenant in this process: its channels, their broadcasts and their presence.
import { encode, encodeBroadcast, FrameByVersion } from '../protocol/encode.ts'
import type { SentBroadcast } from '../protocol/frame.ts'
import type { FanOut, Receiver } from './fan-out.ts'
import type { PresenceChange, RelayedEntry } from '../relay/relay-frame.ts'
import { nameOf } from '../protocol/topic-name.ts'
import { Presence } from './presence.ts'

/** A channel as its topic knows it. */
export interface Member extends Receiver {
  /** Whether it may receive broadcasts. */
  readonly followsBroadcasts: boolean
  /** Whether it receives the presence of others. */
  readonly followsPresence: boolean
  /** Whether a stored message is one that it received when it joined, or an older one. */
  skips(id: bigint): boolean
}

/** Receives what the topic's own channels do, for the other runtimes of the tenant. */
export interface TopicOutlet {
  broadcast(broadcast: SentBroadcast): void
  presence(change: PresenceChange): void
}

/** Milliseconds for which changes of presence are collected into one message. */
const presenceDelay = 20

export class Topic<M extends Member> {
  /** The topic as clients name it: `realtime:<name>`. */
  readonly name: string
  readonly isPrivate: boolean
  readonly #fanOut: FanOut<M>
  readonly #members = new Set<M>()
  /** Entries of channels, and those of other runtimes by their references. */
  readonly #presence: Presence<M | string>
  readonly #outlet: TopicOutlet | undefined
  #timer: NodeJS.Timeout | undefined

  /**
   * @param newRef returns a reference for an entry of presence
   * @param outlet undefined without other runtimes
   */
  constructor(
    name: string,
    isPrivate: boolean,
    fanOut: FanOut<M>,
    newRef: () => string,
    outlet: TopicOutlet | undefined,
  ) {
    this.name = name
    this.isPrivate = isPrivate
    this.#fanOut = fanOut
    this.#presence = new Presence(newRef)
    this.#outlet = outlet
  }

  /** Whether the topic has neither channels nor entries of other runtimes. */
  get isEmpty(): boolean {
    return this.#members.size === 0 && this.#presence.size === 0
  }

  add(member: M): void {
    this.#members.add(member)
  }

  remove(member: M): void {
    this.#members.delete(member)
    this.untrack(member)
  }

  /**
   * Sends a broadcast of a channel to all channels, here and in other runtimes.
   * @param except a channel that does not receive it
   * @returns false when too many messages wait here. Then no runtime sends it
   */
  broadcast(broadcast: SentBroadcast, except?: M): boolean {
    const isSent = this.deliver(broadcast, except)
    if (isSent) this.#outlet?.broadcast(broadcast)
    return isSent
  }

  /** Sends a broadcast to all channels here. Returns false when too many messages wait. */
  deliver(broadcast: SentBroadcast, except?: M): boolean {
    if (!this.#fanOut.hasRoom(broadcast.length)) return false
    const frames = new FrameByVersion((version) => encodeBroadcast(version, this.name, broadcast))
    const { storedId, length } = broadcast
    this.#fanOut.send(
      this.#members,
      (member) => member !== except && member.followsBroadcasts && (storedId === undefined || !member.skips(storedId)),
      frames,
      length,
    )
    return true
  }

  /** Reports to all channels here that a broadcast was dropped. */
  reportError(message: string): void {
    const payload = JSON.stringify({ extension: 'system', status: 'error', message, channel: nameOf(this.name) })
    const frames = new FrameByVersion((version) => encode(version, { topic: this.name, event: 'system', payload }))
    this.#fanOut.send(this.#members, ({ followsBroadcasts }) => followsBroadcasts, frames, payload.length)
  }

  /** Sets a channel's entry of presence. Returns false when the topic has too many bytes of them. */
  track(member: M, key: string, payload: Readonly<Record<string, unknown>>): boolean {
    const left = this.#presence.entryOf(member)?.meta.phx_ref
    const result = this.#presence.track(member, key, payload)
    if (result === 'changed') {
      this.#schedule()
      this.#reportChange(member, left)
    }
    return result !== 'full'
  }

  /** Removes a channel's entry of presence. */
  untrack(member: M): void {
    const left = this.#presence.entryOf(member)?.meta.phx_ref
    // Otherwise, clients would receive neither that it came nor that it left.
    if (this.#presence.isNew(member)) this.#sendDiff()
    if (!this.#presence.untrack(member)) return
    this.#schedule()
    this.#reportChange(member, left)
  }

  /** Adds another runtime's entry of presence. */
  addRemote({ key, meta }: RelayedEntry): void {
    this.#presence.put(meta.phx_ref, key, meta)
    this.#schedule()
  }

  /** Removes another runtime's entry of presence. */
  removeRemote(ref: string): void {
    if (this.#presence.isNew(ref)) this.#sendDiff()
    if (this.#presence.untrack(ref)) this.#schedule()
  }

  /** Returns the entries of the topic's own channels. */
  localEntries(): RelayedEntry[] {
    return [...this.#members]
      .flatMap((member) => this.#presence.entryOf(member) ?? [])
      .map(({ key, meta }) => ({ key, meta }))
  }

  /** Returns the presence of all channels as JSON. Differences since then follow in messages. */
  presenceState(): string {
    this.#sendDiff()
    return this.#presence.state()
  }

  #reportChange(member: M, left: string | undefined): void {
    if (this.#outlet === undefined) return
    const entry = this.#presence.entryOf(member)
    this.#outlet.presence({
      ...(left === undefined ? {} : { left }),
      ...(entry === undefined ? {} : { joined: { key: entry.key, meta: entry.meta } }),
    })
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => this.#sendDiff(), presenceDelay)
  }

  #sendDiff(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const diff = this.#presence.takeDiff()
    if (diff === undefined) return
    const payload = JSON.stringify(diff)
    const frames = new FrameByVersion((version) =>
      encode(version, { topic: this.name, event: 'presence_diff', payload }),
    )
    // A client that misses a difference would show a wrong state, so it is sent even without room.
    this.#fanOut.send(this.#members, ({ followsPresence }) => followsPresence, frames, 0)
  }
}
