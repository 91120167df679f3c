// A runtime for the tests of the gateway. It records what it receives, and behaves as the path selects.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { rejectedHeader } from '@tenantry/contract'
import { WebSocketServer } from 'ws'

/** A request as the runtime received it, without its body. */
export interface Seen {
  method: string
  url: string
  rawHeaders: string[]
  headers: IncomingMessage['headers']
}

export interface Upstream {
  port: number
  url: string
  seen: Seen[]
  /** The bytes of bodies that were received from clients and sent to clients so far. */
  received: number
  sent: number
  /** The number of requests whose client left before their end. */
  aborted: number
  /** Requests whose body is not read yet. */
  stalled: IncomingMessage[]
  /** Responses that wait for the test to send them. */
  waiting: ServerResponse[]
  /** The responses to upgrades that wait for the test to send them. */
  upgrades: (() => void)[]
  /** The number of open requests. */
  open: number
  stop(): Promise<void>
}

export const megabyte = 1024 * 1024

/**
 * The behaviour by path, wherever a tenant's path begins:
 * `/echo` returns the body · `/head` what arrived, as JSON · `/bytes/N` N bytes with their length · `/chunked/N` without ·
 * `/status/N` · `/hang` never responds · `/half` breaks off in the middle · `/close` hangs up without a response ·
 * `/sink` counts the body · `/stall` reads nothing of the body · `/early` rejects with 413 at once, `/early/N` with N ·
 * `/rejected/N` marks its status N as rejected, `/claimed/N` so marks 401 with N bytes, `/unmeasured` 401 without a length ·
 * `/wait` reads the body and leaves the response to the test · `/mute` counts the body and never sends 100 · `/hints` 103 first ·
 * `/trailers` · `/events` an endless stream · `/odd` headers that must not pass · `/denied` rejects an upgrade ·
 * `/late` leaves the response to an upgrade to the test.
 */
export async function startUpstream(port = 0): Promise<Upstream> {
  const state = {
    seen: [] as Seen[],
    received: 0,
    sent: 0,
    aborted: 0,
    stalled: [] as IncomingMessage[],
    waiting: [] as ServerResponse[],
    upgrades: [] as (() => void)[],
    open: 0,
  }
  const server = createServer({ requestTimeout: 0, maxHeaderSize: 128 * 1024 })
  const webSockets = new WebSocketServer({ noServer: true })
  const sockets = new Set<Duplex>()
  const note = (request: IncomingMessage) => {
    const { method = '', url = '', rawHeaders, headers } = request
    state.seen.push({ method, url, rawHeaders, headers })
  }
  server.on('request', (request, response) => {
    note(request)
    state.open++
    response.on('close', () => {
      state.open--
      if (!response.writableFinished) state.aborted++
    })
    // A client that leaves in the middle of its body is counted above.
    respond(request, response, state).catch(() => undefined)
  })
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    if (!/\/(?:early|mute)/.test(request.url ?? '')) response.writeContinue()
    server.emit('request', request, response)
  })
  server.on('upgrade', (request, socket, head) => {
    note(request)
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    if (/\/denied/.test(request.url ?? '')) {
      socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nX-Why: key\r\n\r\nno')
    } else if (/\/raw/.test(request.url ?? '')) {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\nhello ')
      socket.pipe(socket)
    } else {
      const upgrade = () =>
        webSockets.handleUpgrade(request, socket, head, (client) => {
          // A client of the gateway may send invalid frames, which end its connection.
          client.on('error', () => client.terminate())
          client.on('message', (data, isBinary) => client.send(data, { binary: isBinary }))
        })
      if (/\/late/.test(request.url ?? '')) state.upgrades.push(upgrade)
      else upgrade()
    }
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return Object.assign(state, {
    port: address.port,
    url: `http://127.0.0.1:${address.port}`,
    async stop() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  })
}

const actions =
  'echo|head|bytes|chunked|status|hang|half|close|sink|stall|early|wait|mute|rejected|claimed|unmeasured|hints|trailers|events|odd'
const actionInUrl = new RegExp(`/(${actions})(?:/(\\d+))?`)

async function respond(
  request: IncomingMessage,
  response: ServerResponse,
  state: Omit<Upstream, 'port' | 'url' | 'stop'>,
): Promise<void> {
  const url = request.url ?? ''
  const [, action = '', argument = ''] = actionInUrl.exec(url) ?? []
  const number = Number(argument)
  switch (action) {
    case 'echo':
      response.writeHead(200, { 'content-type': request.headers['content-type'] ?? 'application/octet-stream' })
      request.pipe(response)
      return
    case 'bytes':
    case 'chunked':
      response.writeHead(200, action === 'bytes' ? { 'content-length': number } : {})
      await sendBytes(response, number, state)
      response.end()
      return
    case 'status':
      response.writeHead(number, number === 204 ? {} : { etag: '"e"' }).end()
      return
    case 'hang':
      return
    case 'wait':
      request.resume()
      state.waiting.push(response)
      return
    case 'stall':
      state.stalled.push(request)
      return
    case 'half':
      response.writeHead(200, argument === '' ? {} : { 'content-length': number })
      response.write('half', () => setTimeout(() => response.destroy(), 20))
      return
    case 'close':
      request.socket.destroy()
      return
    case 'early':
      response
        .writeHead(argument === '' ? 413 : number, { 'content-type': 'text/plain', 'content-length': 9 })
        .end('too large')
      return
    case 'rejected':
      response.writeHead(number, { [rejectedHeader]: '1', 'content-length': 2 }).end('no')
      return
    case 'claimed':
      response.writeHead(401, { [rejectedHeader]: '1', 'content-length': number }).end('x'.repeat(number))
      return
    case 'unmeasured':
      response.writeHead(401, { [rejectedHeader]: '1' })
      response.write('no')
      response.end()
      return
    case 'hints':
      response.writeEarlyHints({ link: '</style.css>; rel=preload' })
      response.end('hinted')
      return
    case 'trailers':
      response.writeHead(200, { trailer: 'x-sum' })
      response.write('body')
      response.addTrailers({ 'x-sum': '1' })
      response.end()
      return
    case 'events':
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: first\n\n')
      return
    case 'odd':
      response.writeHead(200, [
        'connection',
        'x-named',
        'x-named',
        'hidden',
        'x-tenantry-secret',
        'hidden',
        'x-request-id',
        'forged',
        'set-cookie',
        'a=1',
        'set-cookie',
        'b=2',
        'x-kept',
        'ünï',
      ])
      response.end('odd')
      return
    case 'mute':
    case 'sink':
      for await (const chunk of request) state.received += (chunk as Buffer).length
      response.end(String(state.received))
      return
    default: {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      response.setHeader('content-type', 'application/json')
      response.end(
        JSON.stringify({
          method: request.method,
          url,
          headers: request.headers,
          body: Buffer.concat(chunks).toString('latin1'),
        }),
      )
    }
  }
}

async function sendBytes(response: ServerResponse, count: number, state: { sent: number }): Promise<void> {
  const chunk = Buffer.alloc(64 * 1024, 'x')
  let remaining = count
  while (remaining > 0 && !response.destroyed) {
    const size = Math.min(remaining, chunk.length)
    remaining -= size
    state.sent += size
    if (!response.write(chunk.subarray(0, size))) await room(response)
    else await setImmediate()
  }
}

/** Waits until more can be written, or until the connection has closed. */
function room(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done)
      response.off('close', done)
      resolve()
    }
    response.on('drain', done)
    response.on('close', done)
  })
}
