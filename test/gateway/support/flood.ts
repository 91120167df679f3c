// Clients that hold many connections, each from an address of the loopback network.
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Test } from 'tap'
import { until } from '#test/support/until.ts'

/** Opens connections at once that stay open and send nothing. */
export async function openMany(t: Test, port: number, count: number, localAddress: string): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => connect({ host: '127.0.0.1', port, localAddress }))
  t.teardown(() => sockets.forEach((socket) => socket.destroy()))
  for (const socket of sockets) socket.on('error', () => undefined).resume()
  await Promise.all(sockets.map((socket) => once(socket, 'connect').catch(() => undefined)))
  return sockets
}

/** Returns how many of the connections stay open, once the gateway has closed the others. */
export async function countOpen(sockets: readonly Socket[], expected: number): Promise<number> {
  const open = () => sockets.filter(({ closed }) => !closed).length
  await until(() => open() <= expected, `${expected} open connections`)
  return open()
}

export async function statusFor(
  port: number,
  path: string,
  localAddress: string,
): Promise<number | string | undefined> {
  const request = httpRequest({ agent: false, host: '127.0.0.1', port, path, localAddress }).end()
  try {
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    response.resume()
    return response.statusCode
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'failed'
  }
}
