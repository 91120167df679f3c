// Sends requests as an attacker: from an address of its own, slowly, or many at once.
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Scene } from '../attack.ts'
import type { Tenant } from './tenants.ts'

type Sender = Pick<Scene, 'address' | 'onEnd' | 'signal'>

export interface AttackRequest {
  method?: string
  headers?: Record<string, string>
  body?: string | Buffer
}

/** The headers of a tenant's secret key. */
export const withKey = ({ secretKey }: Tenant) => ({ authorization: `Bearer ${secretKey}` })

/** Describes a response: its status, and the code of an error or its first bytes. */
export function describeResponse(status: number, body: string): string {
  if (status < 400) return String(status)
  return `${status} ${/"code": ?"([^"]+)"/.exec(body)?.[1] ?? body.slice(0, 100)}`
}

/** Sends a request on a connection of its own. @returns the status with the error code, or the error of the connection */
export async function send(sender: Sender, url: string, init: AttackRequest = {}): Promise<string> {
  const { method = 'GET', headers = {}, body } = init
  const call = request(url, { method, headers, agent: false, localAddress: sender.address, signal: sender.signal })
  // The other side may close the connection while the body is sent, also after its response.
  call.on('error', () => undefined)
  call.setTimeout(60_000, () => call.destroy(new Error('no response')))
  try {
    call.end(body)
    const [response] = (await once(call, 'response')) as [IncomingMessage]
    let text = ''
    response.setEncoding('latin1')
    for await (const chunk of response) if (text.length < 10_000) text += String(chunk)
    return describeResponse(response.statusCode ?? 0, text)
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error)
  }
}

/** A connection of an attacker, with what it has received so far. */
export interface RawConnection {
  socket: Socket
  received(): string
}

/** Opens a connection that sends `text` and stays open. It ends with the attack. */
export function openRaw({ address, onEnd }: Sender, port: number, text = ''): RawConnection {
  const socket = connect({ host: '127.0.0.1', port, localAddress: address })
  let received = ''
  socket
    .on('error', () => undefined)
    .on('data', (chunk) => {
      if (received.length < 10_000) received += chunk.toString('latin1')
    })
  if (text !== '') socket.write(text)
  onEnd(() => socket.destroy())
  return { socket, received: () => received }
}

/** Describes the response that a raw connection received, or that it was closed. */
export function describeRaw({ socket, received }: RawConnection): string {
  const text = received()
  const status = /^HTTP\/1\.1 (\d+)/.exec(text)?.[1]
  if (status !== undefined) return describeResponse(Number(status), text)
  return socket.destroyed || socket.readableEnded ? 'closed' : 'open'
}

/**
 * Watches connections for the attack's duration, and longer on a busy machine: until the attacker sees what the attack
 * expects. @returns the outcomes, those of connections that are only open last
 */
export function watchConnections(scene: Scene, connections: readonly RawConnection[]): Promise<string> {
  return scene.watch(() =>
    summary(connections.map(describeRaw).toSorted((a, b) => Number(a === 'open') - Number(b === 'open'))),
  )
}

/** Returns the most frequent of several descriptions, with the others after it. */
export function summary(descriptions: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const text of descriptions) counts.set(text, (counts.get(text) ?? 0) + 1)
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .slice(0, 4)
    .map(([text, count]) => (counts.size === 1 ? text : `${text} (${count})`))
    .join(', ')
}

/** Repeats a request with some in progress at a time, until the attack is over. @returns what the attacker saw */
export async function repeat(scene: Scene, atOnce: number, work: (n: number) => Promise<string>): Promise<string> {
  const seen: string[] = []
  let n = 0
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (!scene.isOver()) seen.push(await work(n++))
    }),
  )
  return summary(seen)
}
