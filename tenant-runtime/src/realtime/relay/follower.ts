// The link of a runtime that follows this one: it receives the broadcasts and the presence of the tenants that it wants.
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { keepAlive } from './keep-alive.ts'
import { encodeText, readRelayFrame } from './relay-frame.ts'
import type { LocalPresence } from './relayed-tenant.ts'

interface FollowerOptions {
  socket: WebSocket
  /** The ID of this process. */
  instance: string
  presenceOf: (tenantId: string) => readonly LocalPresence[]
  /** IDs of the sessions that a sign-out has ended before. */
  endedSessions: readonly string[]
  /** Called for a broadcast that is not sent because too many bytes wait. */
  onDropped: () => void
  onError: (error: Error) => void
}

/** The maximum bytes of broadcasts that wait for the other runtime: of one tenant, and of all. */
const maxTenantBytes = 8 * 1024 * 1024
const maxBytes = 32 * 1024 * 1024
/** The bytes that wait after which the link ends. Presence cannot be dropped, and a new link sends its state again. */
const maxBytesWithPresence = 64 * 1024 * 1024
/** The bytes that wait after which the transfer of presence pauses. */
const pauseBytes = 1024 * 1024
const pauseMs = 5
/** The milliseconds that the end of a link may take. */
const closeMs = 1_000

/** A tenant that the other runtime wants. */
interface Followed {
  /** The bytes of its broadcasts that wait. */
  bytes: number
}

export class Follower {
  readonly #options: FollowerOptions
  readonly #tenants = new Map<string, Followed>()

  constructor(options: FollowerOptions) {
    this.#options = options
    const { socket, instance, endedSessions, onError } = options
    // An error closes the socket.
    socket.on('error', () => undefined)
    socket.on('message', (data: Buffer, isBinary) => {
      try {
        this.#receive(data, isBinary)
      } catch (cause) {
        onError(new Error('Another runtime sent a frame that cannot be read.', { cause }))
        socket.terminate()
      }
    })
    socket.send(encodeText({ kind: 'hello', instance }))
    if (endedSessions.length > 0) this.endSessions(endedSessions)
    keepAlive(socket)
  }

  /** Whether the other runtime wants the messages of a tenant. */
  follows(tenantId: string): boolean {
    return this.#tenants.has(tenantId)
  }

  /** Sends a broadcast, or drops it when too many bytes wait. */
  broadcast(tenantId: string, frame: Buffer): void {
    const { socket, onDropped } = this.#options
    const followed = this.#tenants.get(tenantId)
    if (followed === undefined) return
    if (followed.bytes + frame.length > maxTenantBytes || socket.bufferedAmount + frame.length > maxBytes) {
      onDropped()
      return
    }
    followed.bytes += frame.length
    socket.send(frame, () => (followed.bytes -= frame.length))
  }

  /** Sends IDs of sessions that a sign-out has ended. */
  endSessions(sessions: readonly string[]): void {
    this.#options.socket.send(encodeText({ kind: 'ended', sessions: [...sessions] }))
  }

  /** Sends a change of presence. */
  presence(frame: string): void {
    const { socket } = this.#options
    socket.send(frame)
    if (socket.bufferedAmount > maxBytesWithPresence) socket.terminate()
  }

  /** Ends the link when what waits has been sent. */
  close(): void {
    const { socket } = this.#options
    socket.close()
    const timer = setTimeout(() => socket.terminate(), closeMs)
    socket.once('close', () => clearTimeout(timer))
  }

  #receive(data: Buffer, isBinary: boolean): void {
    const frame = readRelayFrame(data, isBinary)
    if (frame.kind === 'follow') void this.#follow(frame.tenantId, frame.number)
    else if (frame.kind === 'unfollow') this.#tenants.delete(frame.tenantId)
  }

  /** Sends all entries of presence of a tenant. Changes are sent meanwhile. Never throws. */
  async #follow(tenantId: string, number: number): Promise<void> {
    const { socket, presenceOf } = this.#options
    const followed: Followed = { bytes: 0 }
    this.#tenants.set(tenantId, followed)
    socket.send(encodeText({ kind: 'following', tenantId, number }))
    for (const local of presenceOf(tenantId)) {
      const { topic, isPrivate } = local
      for (const joined of local.entries())
        this.presence(encodeText({ kind: 'presence', tenantId, topic, isPrivate, joined }))
      while (socket.bufferedAmount > pauseBytes) await sleep(pauseMs)
      // Another request has replaced this one.
      if (this.#tenants.get(tenantId) !== followed || socket.readyState !== WebSocket.OPEN) return
    }
    socket.send(encodeText({ kind: 'synced', tenantId, number }))
  }
}
