// Another runtime of the same tenants, which this one follows: receives its broadcasts and its presence over one link.
import { WebSocket } from 'ws'
import { internalPaths, internalTokenHeader, sentToken, type InternalToken } from '@tenantry/contract'
import { keepAlive } from './keep-alive.ts'
import { encodeText, readRelayFrame, type RelayedBroadcast, type TextFrame } from './relay-frame.ts'
import type { RelayedTenant } from './relayed-tenant.ts'
import { RemoteEntries } from './remote-entries.ts'

interface SiblingOptions {
  /** Its address and port, as in a URL. */
  address: string
  token: InternalToken
  /** The ID of this process. */
  instance: string
  /** Whether another link leads to the same process. */
  isFollowed: (instance: string, except: Sibling) => boolean
  /** Called when `isSynced` may have changed. */
  onChange: () => void
  /** Called with IDs of sessions that a sign-out has ended at the other end. */
  onEndedSessions: (sessions: readonly string[]) => void
  /** Called for a broadcast that is not delivered because too many messages wait for the clients. */
  onDropped: () => void
  onError: (error: Error) => void
}

/** The milliseconds after which a link that has not opened is given up. */
const openMs = 2_000
/** The maximum bytes of a frame. The largest message has 4 MiB, and an entry of presence much less. */
const maxFrameBytes = 8 * 1024 * 1024

/** The subscription to one tenant. */
interface Subscription {
  tenant: RelayedTenant
  entries: RemoteEntries
  number: number
  /** `requested` until frames belong to this request, then `following`, and `synced` when all entries have arrived. */
  state: 'requested' | 'following' | 'synced'
}

export class Sibling {
  readonly #options: SiblingOptions
  readonly #subscriptions = new Map<string, Subscription>()
  #socket: WebSocket | undefined
  /** The ID of the process whose entries the subscriptions have. */
  #instance: string | undefined
  #isOpen = false
  #isSelf = false
  #isClosed = false
  #number = 0

  constructor(options: SiblingOptions) {
    this.#options = options
  }

  /** The ID of the process at the other end; undefined without a link. */
  get openInstance(): string | undefined {
    return this.#isOpen ? this.#instance : undefined
  }

  /** Whether the address is this process' own. */
  get isSelf(): boolean {
    return this.#isSelf
  }

  /** Whether all entries of a tenant's presence have arrived. True without a link: nothing can be expected. */
  isSynced(tenantId: string): boolean {
    const subscription = this.#subscriptions.get(tenantId)
    return !this.#isOpen || subscription === undefined || subscription.state === 'synced'
  }

  /** Opens the link, unless it is open or opening. */
  connect(): void {
    if (this.#socket !== undefined || this.#isSelf || this.#isClosed) return
    const { address, token, onError } = this.#options
    const socket = new WebSocket(`ws://${address}${internalPaths.realtimeRelay}`, {
      headers: { [internalTokenHeader]: sentToken(token) },
      perMessageDeflate: false,
      maxPayload: maxFrameBytes,
    })
    this.#socket = socket
    const timer = setTimeout(() => {
      if (!this.#isOpen) socket.terminate()
    }, openMs)
    // An error closes the socket.
    socket.on('error', () => undefined)
    socket.on('open', () => keepAlive(socket))
    socket.on('message', (data: Buffer, isBinary) => {
      if (this.#socket !== socket) return
      try {
        this.#receive(readRelayFrame(data, isBinary), socket)
      } catch (cause) {
        onError(new Error('A message of another runtime could not be read.', { cause }))
        socket.terminate()
      }
    })
    socket.on('close', () => {
      clearTimeout(timer)
      this.#end()
    })
  }

  /** Receives the messages of a tenant. */
  follow(tenant: RelayedTenant): void {
    const subscription: Subscription = { tenant, entries: new RemoteEntries(), number: 0, state: 'requested' }
    this.#subscriptions.set(tenant.tenantId, subscription)
    if (this.#isOpen) this.#request(subscription)
  }

  /** Ends the messages of a tenant that no client follows any more. */
  unfollow(tenantId: string): void {
    if (this.#subscriptions.delete(tenantId) && this.#isOpen)
      this.#socket?.send(encodeText({ kind: 'unfollow', tenantId }))
  }

  /** Ends the link for good. */
  close(): void {
    this.#isClosed = true
    this.#socket?.terminate()
  }

  #request(subscription: Subscription): void {
    subscription.number = ++this.#number
    subscription.state = 'requested'
    const { tenantId } = subscription.tenant
    this.#socket?.send(encodeText({ kind: 'follow', tenantId, number: subscription.number }))
  }

  #receive(frame: TextFrame | RelayedBroadcast, socket: WebSocket): void {
    if (frame.kind === 'hello') this.#open(frame.instance, socket)
    else if (frame.kind === 'ended') this.#options.onEndedSessions(frame.sessions)
    else if ('tenantId' in frame) {
      const subscription = this.#subscriptions.get(frame.tenantId)
      if (subscription !== undefined) this.#receiveOf(subscription, frame)
    }
  }

  #open(instance: string, socket: WebSocket): void {
    const { instance: own, isFollowed } = this.#options
    this.#isSelf = instance === own
    if (this.#isSelf || isFollowed(instance, this)) {
      socket.terminate()
      return
    }
    // Another process has none of the former one's clients.
    if (this.#instance !== instance) this.#clear()
    this.#instance = instance
    this.#isOpen = true
    for (const subscription of this.#subscriptions.values()) this.#request(subscription)
  }

  #receiveOf(subscription: Subscription, frame: TextFrame | RelayedBroadcast): void {
    const { tenant, entries, number } = subscription
    if (frame.kind === 'following') {
      if (frame.number !== number) return
      subscription.state = 'following'
      entries.begin()
    } else if (subscription.state === 'requested') return
    // What follows belongs to this request.
    if (frame.kind === 'broadcast') {
      if (!tenant.deliver(frame.topic, frame.isPrivate, frame.broadcast)) this.#options.onDropped()
    } else if (frame.kind === 'presence') this.#change(subscription, frame)
    else if (frame.kind === 'synced') {
      for (const entry of entries.end()) tenant.removeRemote(entry, entry.ref)
      subscription.state = 'synced'
      this.#options.onChange()
    }
  }

  #change({ tenant, entries }: Subscription, frame: Extract<TextFrame, { kind: 'presence' }>): void {
    const { topic, isPrivate, left, joined } = frame
    if (left !== undefined) {
      const entry = entries.remove(left)
      if (entry !== undefined) tenant.removeRemote(entry, left)
    }
    if (joined !== undefined && entries.add({ ref: joined.meta.phx_ref, topic, isPrivate }))
      tenant.addRemote({ topic, isPrivate }, joined)
  }

  /** The link has ended. One that was open is opened again at once; entries remain if that succeeds. */
  #end(): void {
    const wasOpen = this.#isOpen
    this.#socket = undefined
    this.#isOpen = false
    if (wasOpen && !this.#isClosed) this.connect()
    else this.#lose()
    this.#options.onChange()
  }

  #lose(): void {
    if (this.#instance !== undefined && !this.#isClosed)
      this.#options.onError(
        new Error(`The runtime at ${this.#options.address} is lost: realtime messages of its clients do not arrive.`),
      )
    this.#instance = undefined
    this.#clear()
  }

  #clear(): void {
    for (const { tenant, entries } of this.#subscriptions.values())
      for (const entry of entries.clear()) tenant.removeRemote(entry, entry.ref)
  }
}
