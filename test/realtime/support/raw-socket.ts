// A client that sends and receives frames as they are.
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { WebSocket } from 'ws'
import type { TestTenant } from '#test/support/runtime.ts'
import { until } from '#test/support/until.ts'

/** A text frame of the server. */
export interface ReceivedFrame {
  joinRef: string | null
  ref: string | null
  topic: string
  event: string
  payload: Record<string, unknown>
}

interface RawOptions {
  version?: '1.0.0' | '2.0.0'
  key?: string
}

export class RawSocket {
  readonly socket: WebSocket
  readonly frames: ReceivedFrame[] = []
  readonly binary: Buffer[] = []
  closed: { code: number; reason: string } | undefined
  #ref = 0
  readonly #version: '1.0.0' | '2.0.0'

  constructor(tenant: Pick<TestTenant, 'url' | 'publishableKey'>, { version = '2.0.0', key }: RawOptions = {}) {
    this.#version = version
    const url = tenant.url.replace(/^http/, 'ws')
    const query = `apikey=${encodeURIComponent(key ?? tenant.publishableKey)}&vsn=${version}`
    this.socket = new WebSocket(`${url}/realtime/v1/websocket?${query}`)
    this.socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) this.binary.push(data)
      else this.frames.push(read(data.toString(), version))
    })
    this.socket.on('close', (code, reason) => (this.closed = { code, reason: reason.toString() }))
  }

  /** Connects. @throws Error when the server responds with another status */
  static async open(tenant: Pick<TestTenant, 'url' | 'publishableKey'>, options: RawOptions = {}): Promise<RawSocket> {
    const raw = new RawSocket(tenant, options)
    await once(raw.socket, 'open')
    return raw
  }

  sendText(text: string): void {
    this.socket.send(text)
  }

  sendBytes(bytes: Buffer): void {
    this.socket.send(bytes)
  }

  /** Sends a message. Returns its reference. */
  send(topic: string, event: string, payload: unknown, joinRef: string | null = null): string {
    const ref = String(++this.#ref)
    const frame =
      this.#version === '2.0.0'
        ? [joinRef, ref, topic, event, payload]
        : { join_ref: joinRef, ref, topic, event, payload }
    this.sendText(JSON.stringify(frame))
    return ref
  }

  /** Joins a topic, and returns the reference of the join and the reply. */
  async join(topic: string, config: object = {}, more: object = {}): Promise<{ ref: string; reply: ReceivedFrame }> {
    const ref = String(this.#ref + 1)
    this.send(topic, 'phx_join', { config, ...more }, ref)
    return { ref, reply: await this.reply(ref) }
  }

  /** Waits for the reply to a message. */
  reply(ref: string): Promise<ReceivedFrame> {
    return this.until((frame) => frame.event === 'phx_reply' && frame.ref === ref, `the reply to ${ref}`)
  }

  /** Sends a message and waits for its reply. */
  call(topic: string, event: string, payload: unknown, joinRef: string | null = null): Promise<ReceivedFrame> {
    return this.reply(this.send(topic, event, payload, joinRef))
  }

  /** Waits for a frame. */
  async until(isWanted: (frame: ReceivedFrame) => boolean, what: string): Promise<ReceivedFrame> {
    await until(() => this.frames.some(isWanted), what)
    const frame = this.frames.find(isWanted)
    if (frame === undefined) throw new Error(`${what} is missing`)
    return frame
  }

  /** Returns the frames of an event that have arrived. */
  of(event: string): ReceivedFrame[] {
    return this.frames.filter((frame) => frame.event === event)
  }

  /** Waits until the server has closed the connection. */
  async untilClosed(): Promise<{ code: number; reason: string }> {
    await until(() => this.closed !== undefined, 'the connection is closed')
    return this.closed ?? { code: 0, reason: '' }
  }

  leave(): void {
    this.socket.terminate()
  }
}

/** Returns the bytes that a client's socket has received. */
export function bytesOf(socket: WebSocket): number {
  return (socket as unknown as { _socket: Socket })._socket.bytesRead
}

function read(text: string, version: string): ReceivedFrame {
  const parsed = JSON.parse(text) as unknown[] & Record<string, unknown>
  const [joinRef, ref, topic, event, payload] =
    version === '2.0.0'
      ? parsed
      : [parsed['join_ref'], parsed['ref'], parsed['topic'], parsed['event'], parsed['payload']]
  return { joinRef, ref, topic, event, payload } as ReceivedFrame
}
