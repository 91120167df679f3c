// Small bodies: they reach the runtime with the head in one write if they have arrived with it, and as a stream otherwise.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { until } from '#test/support/until.ts'
import { send, sendRaw, startSetting } from './support/gateway.ts'

const post = (path: string, length: number, more = '') =>
  `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${length}\r\n${more}\r\n`

/** Starts a runtime that keeps each chunk which arrives on a connection, and responds to each whole body of 5 bytes. */
async function startReceiver(t: Test) {
  const chunks: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk.toString('latin1'))
      if (chunks.join('').endsWith('12345')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The receiver has no port.')
  return { chunks, url: `http://127.0.0.1:${address.port}` }
}

/** Returns a body without the sizes of its chunks. */
function unchunked(body: string): string {
  const [, size = '', rest = ''] = /^([0-9a-f]+)\r\n([^]*)$/.exec(body) ?? []
  const length = Number.parseInt(size, 16)
  return length > 0 ? rest.slice(0, length) + unchunked(rest.slice(length + 2)) : ''
}

t.test('A body that arrives with its head is forwarded with it', async (t) => {
  const { gateway, add } = await startSetting(t)
  const { chunks, url } = await startReceiver(t)
  await add('acme', { runtimes: [url] })
  const got = await sendRaw(gateway.port, `${post('/t/acme/x', 5)}12345`, { waitFor: /ok$/ })
  t.match(got, /^HTTP\/1.1 200 OK/)
  t.equal(chunks.length, 1, 'one write')
  t.match(chunks[0], /\r\ncontent-length: 5\r\n\r\n12345$/)
})

t.test('The rest of a body that arrives later follows what has arrived with the head', async (t) => {
  const { gateway, add } = await startSetting(t)
  const { chunks, url } = await startReceiver(t)
  await add('acme', { runtimes: [url] })
  const socket = connect(gateway.port, '127.0.0.1')
  const respond = async () => {
    const [response] = (await once(socket, 'data')) as [Buffer]
    t.match(response.toString(), /^HTTP\/1.1 200 OK/)
    t.match(chunks.join(''), /\r\ncontent-length: 5\r\n\r\n12345$/)
  }
  socket.write(`${post('/t/acme/x', 5)}123`)
  await until(() => chunks.join('').endsWith('\r\n\r\n123'), 'the runtime has what has arrived')
  socket.write('45')
  await respond()
  chunks.length = 0
  socket.write(post('/t/acme/x', 5))
  await sleep(50)
  socket.write('12345')
  await respond()
  socket.destroy()
})

t.test('Requests that follow each other in one packet have the bodies that their lengths state', async (t) => {
  const { gateway, add } = await startSetting(t)
  await add('acme')
  const bodies = ['a', 'bc', 'x'.repeat(16 * 1024), 'y'.repeat(16 * 1024 + 1), 'POST /t/acme/echo HTTP/1.1\r\n\r\n']
  const requests = bodies.map((body) => `${post('/t/acme/echo', body.length)}${body}`)
  const last = `${post('/t/acme/echo', 3, 'connection: close\r\n')}end`
  const got = await sendRaw(gateway.port, [...requests, last].join(''))
  const received = got
    .split('HTTP/1.1 200 OK\r\n')
    .slice(1)
    .map((response) => unchunked(response.slice(response.indexOf('\r\n\r\n') + 4)))
  t.same(received, [...bodies, 'end'])
})

t.test('A whole body is sent to another runtime if nothing of it has reached the first', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  await add('acme', { runtimes: ['http://127.0.0.1:1', upstream.url] })
  for (let n = 0; n < 4; n++) {
    const { status, body } = await send(gateway.port, { path: '/t/acme/echo', method: 'POST', body: `body ${n}` })
    t.same([status, body], [200, `body ${n}`])
  }
})

t.test('A whole body is sent later if no runtime can be reached at first', async (t) => {
  const { gateway, add, put } = await startSetting(t)
  const route = await add('acme', { runtimes: ['http://127.0.0.1:1'] })
  const { url, chunks } = await startReceiver(t)
  const response = send(gateway.port, { path: '/t/acme/x', method: 'POST', body: '12345' })
  await sleep(50)
  await put({ ...route, generation: 2, runtimes: [url] })
  t.equal((await response).status, 200)
  t.match(chunks.join(''), /\r\n\r\n12345$/)
})

t.test('A client that leaves before its body is whole ends its request', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  await add('acme')
  const socket = connect(gateway.port, '127.0.0.1')
  socket.write(`${post('/t/acme/sink', 5)}123`)
  await until(() => upstream.received === 3, 'the runtime has the part')
  socket.destroy()
  await until(() => upstream.open === 0, 'the request has ended')
  t.equal(upstream.aborted, 1)
  t.equal((await send(gateway.port, { path: '/t/acme/echo', method: 'POST', body: 'next' })).body, 'next')
})
