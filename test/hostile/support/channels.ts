// WebSockets of an attacker with realtime channels.
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { WebSocket } from 'ws'
import type { Scene } from '../attack.ts'
import { summary } from './requests.ts'
import type { Tenant } from './tenants.ts'

type Sender = Pick<Scene, 'addressOf' | 'onEnd'>

/** The first word of a reason, such as `TooManyFrames`. */
const codeOf = (text: string) => /"(?:reason|message)":"([A-Z]\w+): /.exec(text)?.[1]

/** A WebSocket with what it has seen: codes of rejections, and the end of the connection. */
export class AttackSocket {
  readonly socket: WebSocket
  readonly #seen = new Set<string>()
  #ref = 0

  constructor({ addressOf, onEnd }: Sender, { url, secretKey }: Tenant, n: number) {
    const target = `${url.replace(/^http/, 'ws')}/realtime/v1/websocket?apikey=${secretKey}&vsn=2.0.0`
    this.socket = new WebSocket(target, { localAddress: addressOf(n), maxPayload: 0 })
    this.socket
      .on('error', () => undefined)
      .on('unexpected-response', (_request, response) => this.#seen.add(String(response.statusCode)))
      .on('message', (data: Buffer) => {
        const code = data.length > 10_000 ? undefined : codeOf(data.toString('latin1'))
        if (code !== undefined) this.#seen.add(code)
      })
      .on('close', (code, reason) => this.#seen.add(`${code} ${reason.toString().split(':')[0] ?? ''}`.trim()))
    onEnd(() => this.socket.terminate())
  }

  get isOpen(): boolean {
    return this.socket.readyState === WebSocket.OPEN
  }

  /** The connection below. */
  get stream(): Socket {
    return (this.socket as unknown as { _socket: Socket })._socket
  }

  /** Sends a message, unless the connection has ended. */
  send(topic: string, event: string, payload: unknown): void {
    if (this.isOpen) this.socket.send(JSON.stringify(['1', String(++this.#ref), topic, event, payload]))
  }

  join(topic: string, config: object = {}): void {
    if (this.isOpen) this.socket.send(JSON.stringify(['1', '1', topic, 'phx_join', { config }]))
  }

  /** Returns everything that it has seen, or `open`. */
  describe(): string {
    return this.#seen.size > 0 ? [...this.#seen].sort().join(' ') : this.isOpen ? 'open' : 'connecting'
  }
}

/** Opens WebSockets from as many addresses, and waits until each has a response. */
export async function openChannels(scene: Sender, tenant: Tenant, count: number): Promise<AttackSocket[]> {
  const sockets = Array.from({ length: count }, (_, n) => new AttackSocket(scene, tenant, n))
  await Promise.all(
    sockets.map(({ socket }) =>
      Promise.race([once(socket, 'open'), once(socket, 'close'), once(socket, 'unexpected-response')]).catch(
        () => undefined,
      ),
    ),
  )
  return sockets
}

/** Repeats an action of all sockets each tenth of a second until the attack is over. @returns what the attacker saw */
export async function repeatOn(
  scene: Scene,
  sockets: readonly AttackSocket[],
  act: (socket: AttackSocket, n: number) => void,
): Promise<string> {
  let n = 0
  const tick = () => {
    for (const socket of sockets) act(socket, n++)
  }
  tick()
  const timer = setInterval(tick, 100)
  scene.onEnd(() => clearInterval(timer))
  return scene.watch(() => summary(sockets.map((socket) => socket.describe())))
}
