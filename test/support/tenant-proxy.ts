// An HTTP proxy in front of a runtime for one tenant. It sets the internal headers, as the gateway does.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { basePathHeader, internalHeaderPrefix, internalTokenHeader, tenantHeader } from '@tenantry/contract'

export const internalToken = randomBytes(24).toString('hex')

/** Opens the proxy. It drops internal headers of clients, sets its own, and forwards everything else unchanged. */
export async function openProxy(upstream: number, tenantId: string): Promise<{ port: number; stop(): Promise<void> }> {
  // The keep-alive timeout equals the gateway's: a slow client must not find its connection closed.
  const server = createServer({ maxHeaderSize: 128 * 1024, keepAliveTimeout: 75_000 }, (incoming, outgoing) => {
    const headers = Object.fromEntries(
      Object.entries(incoming.headers).filter(([name]) => !name.startsWith(internalHeaderPrefix)),
    )
    const onward = httpRequest(
      {
        host: '127.0.0.1',
        port: upstream,
        method: incoming.method,
        path: incoming.url,
        agent: false,
        headers: { ...headers, [internalTokenHeader]: internalToken, [tenantHeader]: tenantId, [basePathHeader]: '' },
      },
      (response) => {
        outgoing.writeHead(response.statusCode ?? 502, response.headers)
        response.pipe(outgoing)
        response.once('error', () => outgoing.destroy())
      },
    )
    onward.once('error', () => outgoing.destroy())
    outgoing.once('close', () => onward.destroy())
    // A runtime may reject a request by its headers alone, before the body arrives.
    onward.flushHeaders()
    incoming.pipe(onward)
    incoming.once('error', () => onward.destroy())
  })
  server.on('upgrade', (incoming: IncomingMessage, socket: Socket, head: Buffer) => {
    const onward = httpRequest({
      host: '127.0.0.1',
      port: upstream,
      path: incoming.url,
      agent: false,
      headers: { ...incoming.headers, [internalTokenHeader]: internalToken, [tenantHeader]: tenantId },
    })
    onward.once('upgrade', (response, runtime, first) => {
      socket.write(headOf(response))
      socket.write(first)
      runtime.write(head)
      socket.pipe(runtime).pipe(socket)
      runtime.once('error', () => socket.destroy())
      runtime.once('close', () => socket.destroySoon())
      socket.once('close', () => runtime.destroy())
    })
    onward.once('response', (response) => {
      socket.write(headOf(response))
      response.pipe(socket)
    })
    onward.once('error', () => socket.destroy())
    socket.once('error', () => onward.destroy())
    onward.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return {
    port: address.port,
    async stop() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

/** Returns the head of a response as it is sent. */
function headOf({ statusCode = 502, statusMessage = '', rawHeaders }: IncomingMessage): string {
  const lines = rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${rawHeaders[at + 1] ?? ''}`] : []))
  return [`HTTP/1.1 ${statusCode} ${statusMessage}`, ...lines, '', ''].join('\r\n')
}
