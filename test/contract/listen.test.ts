// A server with several listeners on its port.
import { once } from 'node:events'
import { createServer, get } from 'node:http'
import { connect, createServer as createSocketServer, type Server } from 'node:net'
import { setImmediate as round } from 'node:timers/promises'
import t from 'tap'
import { listenWidely } from '#contract/listen.ts'

const host = '127.0.0.1'

t.test('A server accepts a hundred connections in a few rounds of the event loop', async (t) => {
  const server = createSocketServer((socket) => socket.on('error', () => undefined))
  let accepted = 0
  server.on('connection', () => accepted++)
  const { port, close } = await listenWidely(server, { host, port: 0 })
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await close()
  })
  const sockets = Array.from({ length: 200 }, () => connect({ host, port }).on('error', () => undefined))
  let rounds = 0
  while (accepted < 200) {
    await round()
    rounds++
    // The kernel opens all connections in the meantime.
    const end = performance.now() + 5
    while (performance.now() < end);
  }
  // A single listener needs 200.
  t.ok(rounds < 100, `${rounds} rounds`)
})

t.test('A port in use is an error, also for a server that shares its own', async (t) => {
  const first = createServer()
  const { port, close } = await listenWidely(first, { host, port: 0 })
  const second = createServer()
  await t.rejects(listenWidely(second, { host, port }), { code: 'EADDRINUSE' })
  const closed = once(first, 'close')
  first.close()
  await Promise.all([closed, close()])
  const again = await listenWidely(second, { host, port })
  t.equal(again.port, port, 'free again')
  second.close()
  await again.close()
})

t.test('Servers share a port if both want to, and each accepts connections', async (t) => {
  const accepted = [0, 0]
  const servers = accepted.map((_, at) =>
    createSocketServer((socket) => {
      accepted[at] = (accepted[at] ?? 0) + 1
      socket.end()
    }),
  )
  const [first, second] = servers as [Server, Server]
  const { port, close } = await listenWidely(first, { host, port: 0 })
  const other = await listenWidely(second, { host, port, isShared: true })
  t.equal(other.port, port)
  const send = async () => {
    const socket = connect({ host, port }).resume()
    await once(socket, 'close')
  }
  // Of 200 connections, either server gets about half.
  await Promise.all(Array.from({ length: 200 }, send))
  t.ok(
    accepted.every((count) => count > 50),
    accepted.join(' and '),
  )
  first.close()
  await close()
  accepted.fill(0)
  await Promise.all(Array.from({ length: 20 }, send))
  t.same(accepted, [0, 20], 'the other server has all connections')
  second.close()
  await other.close()
})

t.test('A closed server serves its last responses, and nothing listens', async (t) => {
  const responses: (() => void)[] = []
  const server = createServer((_, response) => responses.push(() => response.end('served')))
  const { port, close } = await listenWidely(server, { host, port: 0 })
  const bodies = Array.from({ length: 32 }, async () => {
    const request = get({ host, port, agent: false })
    const [response] = (await once(request, 'response')) as [AsyncIterable<Buffer>]
    let body = ''
    for await (const chunk of response) body += chunk.toString()
    return body
  })
  while (responses.length < bodies.length) await round()
  const closed = Promise.all([once(server, 'close'), close()])
  server.close()
  const late = connect({ host, port })
  const [error] = (await once(late, 'error')) as [NodeJS.ErrnoException]
  t.equal(error.code, 'ECONNREFUSED')
  for (const end of responses) end()
  t.same(await Promise.all(bodies), Array<string>(32).fill('served'))
  await closed
})
