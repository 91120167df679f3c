// Bodies pass in both directions as they arrive, at the pace of the slower side.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import t from 'tap'
import { until } from '#test/support/until.ts'
import { send, sendRaw, startSetting } from './support/gateway.ts'
import { megabyte } from './support/upstream.ts'

const large = 100 * megabyte
/** The bytes that kernels and buffers may hold while no reader takes any. This is far less than the body. */
const inFlight = 24 * megabyte

async function responseTo(request: ClientRequest): Promise<IncomingMessage> {
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return response
}

t.test('100 MB pass completely in both directions, by length and chunked', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  await add('acme')
  const part = Buffer.alloc(megabyte, 'abcdefg')
  for (const headers of [{ 'content-length': large }, {}]) {
    const before = upstream.received
    const request = httpRequest({
      agent: false,
      host: '127.0.0.1',
      port: gateway.port,
      path: '/t/acme/sink',
      method: 'POST',
      headers,
    })
    const result = responseTo(request)
    for (let sent = 0; sent < large; sent += part.length) if (!request.write(part)) await once(request, 'drain')
    request.end()
    const response = await result
    response.resume()
    await once(response, 'end')
    t.equal(response.statusCode, 200)
    t.equal(upstream.received - before, large)
  }
  for (const path of [`/t/acme/bytes/${large}`, `/t/acme/chunked/${large}`]) {
    const request = httpRequest({ agent: false, host: '127.0.0.1', port: gateway.port, path }).end()
    const response = await responseTo(request)
    let received = 0
    for await (const chunk of response) received += (chunk as Buffer).length
    t.equal(received, large, path)
  }
})

t.test('A body returns byte for byte', async (t) => {
  const { gateway, add } = await startSetting(t)
  await add('acme')
  const body = Buffer.from(Array.from({ length: 3 * megabyte }, (_, index) => (index * index) & 0xff))
  const { body: back, headers } = await send(gateway.port, {
    path: '/t/acme/echo',
    method: 'PUT',
    headers: { 'content-type': 'image/png' },
    body,
  })
  t.equal(headers['content-type'], 'image/png')
  t.equal(
    createHash('sha256').update(Buffer.from(back, 'latin1')).digest('hex'),
    createHash('sha256').update(body).digest('hex'),
  )
})

t.test('A reader that stalls pauses the runtime', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  await add('acme')
  const request = httpRequest({
    agent: false,
    host: '127.0.0.1',
    port: gateway.port,
    path: `/t/acme/bytes/${large}`,
  }).end()
  const response = await responseTo(request)
  response.pause()
  const settled = await stillness(() => upstream.sent)
  t.ok(settled < inFlight, `${settled} bytes left the runtime`)
  let received = 0
  for await (const chunk of response) received += (chunk as Buffer).length
  t.equal(received, large, 'the reader receives all of it afterwards')
})

t.test('A runtime that stalls pauses the sender', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  await add('acme')
  const socket = connect(gateway.port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(`POST /t/acme/stall HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${large}\r\n\r\n`)
  const chunk = Buffer.alloc(64 * 1024, 'x')
  let stopped = false
  const sending = (async () => {
    while (!stopped) if (!socket.write(chunk)) await Promise.race([once(socket, 'drain'), once(socket, 'close')])
  })()
  await until(() => upstream.open === 1)
  const settled = await stillness(() => socket.bytesWritten - socket.writableLength)
  t.ok(settled > 0 && settled < inFlight, `${settled} bytes were taken from the sender`)
  stopped = true
  socket.destroy()
  await sending
  for (const request of upstream.stalled) request.resume()
  await until(() => upstream.aborted === 1, 'the abort at the runtime')
})

t.test('An event stream is delivered as it arrives', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  await add('acme')
  const request = httpRequest({
    agent: false,
    host: '127.0.0.1',
    port: gateway.port,
    path: '/t/acme/events',
    headers: { accept: 'text/event-stream' },
  }).end()
  const response = await responseTo(request)
  const [first] = (await once(response, 'data')) as [Buffer]
  t.equal(first.toString(), 'data: first\n\n')
  request.destroy()
  await until(() => upstream.open === 0)
})

t.test('With Expect: 100-continue the body is requested only when the runtime wants it', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  await add('acme')
  await add('later', { phase: 'pending' })
  const head = (path: string, framing: string) =>
    `POST ${path} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n${framing}\r\n\r\n`
  for (const [framing, body] of [
    ['Content-Length: 3', 'abc'],
    ['Transfer-Encoding: chunked', '3\r\nabc\r\n0\r\n\r\n'],
  ] as const) {
    const socket = connect(gateway.port, '127.0.0.1')
    let got = ''
    socket.on('data', (chunk: Buffer) => (got += chunk.toString()))
    socket.write(head('/t/acme/sink', framing))
    await until(() => got.startsWith('HTTP/1.1 100 Continue\r\n\r\n'), '100 Continue')
    socket.write(body)
    await until(() => /HTTP\/1\.1 200 OK\r\n/.test(got), 'the response')
    socket.write('GET /t/acme/bytes/3 HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await until(() => got.endsWith('xxx'), 'another response on the same connection')
    socket.destroy()
  }
  t.equal(upstream.received, 6)
  const early = await sendRaw(gateway.port, head('/t/acme/early', 'Content-Length: 1000000'))
  t.match(early, /^HTTP\/1\.1 413 /, 'rejected by the runtime before the first byte')
  t.match(await sendRaw(gateway.port, head('/t/missing/x', 'Content-Length: 3')), /^HTTP\/1\.1 404 /)
  t.match(await sendRaw(gateway.port, head('/t/later/x', 'Content-Length: 3')), /^HTTP\/1\.1 503 /)
  t.equal(upstream.aborted, 0)
})

t.test('An early rejection reaches a client that is still sending', async (t) => {
  const { gateway, add } = await startSetting(t)
  await add('acme')
  const body = Buffer.alloc(4 * megabyte, 'x')
  for (const path of ['/t/acme/early', '/t/missing/x']) {
    const { status } = await send(gateway.port, { path, method: 'POST', body })
    t.equal(status, path.includes('acme') ? 413 : 404)
  }
})

/** Returns the value once it has not changed for a while. */
async function stillness(value: () => number): Promise<number> {
  let last = -1
  let same = 0
  await until(() => {
    same = value() === last ? same + 1 : 0
    last = value()
    return same >= 60
  }, 'stillness')
  return last
}
