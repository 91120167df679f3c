// Failures of a client or a runtime, and timeouts: what the other side receives, and what the gateway closes.
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect, createServer } from 'node:net'
import t from 'tap'
import { until } from '#test/support/until.ts'
import { send, sendRaw, startSetting } from './support/gateway.ts'
import { startUpstream } from './support/upstream.ts'

t.test('The gateway aborts the request at the runtime when its client leaves', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  await add('acme')
  for (const path of ['/t/acme/hang', '/t/acme/events', '/t/acme/bytes/100000000']) {
    const before = upstream.aborted
    const request = httpRequest({ agent: false, host: '127.0.0.1', port: gateway.port, path }).end()
    request.on('error', () => undefined)
    await until(() => upstream.open === 1)
    request.destroy()
    await until(() => upstream.aborted === before + 1, `the abort of ${path}`)
  }
  const upload = httpRequest({
    agent: false,
    host: '127.0.0.1',
    port: gateway.port,
    path: '/t/acme/sink',
    method: 'POST',
  })
  upload.on('error', () => undefined)
  upload.write('part')
  await until(() => upstream.received === 4)
  upload.destroy()
  await until(() => upstream.open === 0)
  t.equal(upstream.aborted, 4)
})

t.test('A response that the runtime breaks off never appears complete', async (t) => {
  const { gateway, add } = await startSetting(t)
  await add('acme')
  await t.rejects(send(gateway.port, { path: '/t/acme/half' }), 'chunked: the connection is cut')
  await t.rejects(send(gateway.port, { path: '/t/acme/half/100' }), 'by length: the connection is cut')
  const closed = await send(gateway.port, { path: '/t/acme/close', method: 'POST', body: 'x' })
  t.equal(closed.status, 502)
  t.equal((JSON.parse(closed.body) as { code: string }).code, 'BAD_GATEWAY')
})

t.test('A safe request is sent again after a broken connection, a changing one never', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  await add('acme')
  t.equal((await send(gateway.port, { path: '/t/acme/close' })).status, 502)
  t.equal(upstream.seen.length, 2)
  t.equal((await send(gateway.port, { path: '/t/acme/close', method: 'DELETE' })).status, 502)
  t.equal(upstream.seen.length, 3)
})

t.test('An unreadable response returns 502', async (t) => {
  const { gateway, add } = await startSetting(t)
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as { port: number }
  await add('acme', { runtimes: [`http://127.0.0.1:${port}`] })
  t.equal((await send(gateway.port, { path: '/t/acme/', method: 'POST' })).status, 502)
})

t.test('An unreachable runtime returns 503 with Retry-After, after the others were tried', async (t) => {
  const { gateway, upstream, add, put } = await startSetting(t, { limits: { reachTimeout: 300 } })
  const gone = await startUpstream()
  await gone.stop()
  const route = await add('acme', { runtimes: [gone.url] })
  const { status, headers, body } = await send(gateway.port, { path: '/t/acme/head', method: 'POST', body: 'x' })
  t.equal(status, 503)
  t.equal(headers['retry-after'], '1')
  t.equal((JSON.parse(body) as { code: string }).code, 'RUNTIME_UNREACHABLE')
  await put({ ...route, generation: 2, runtimes: [gone.url, upstream.url] })
  for (let n = 0; n < 6; n++) {
    const response = await send(gateway.port, { path: '/t/acme/head', method: 'POST', body: `body ${n}` })
    t.equal(response.status, 200)
    t.equal((JSON.parse(response.body) as { body: string }).body, `body ${n}`, 'with its whole body')
  }
  await put({ ...route, generation: 3, runtimes: [] })
  t.equal((await send(gateway.port, { path: '/t/acme/head' })).status, 503)
})

t.test('The gateway uses a runtime again once it is back', async (t) => {
  const { gateway, upstream, add } = await startSetting(t, { limits: { reachTimeout: 300 } })
  await add('acme')
  t.equal((await send(gateway.port, { path: '/t/acme/head' })).status, 200)
  await upstream.stop()
  t.equal((await send(gateway.port, { path: '/t/acme/head' })).status, 503)
  const again = await startUpstream(upstream.port)
  t.teardown(() => again.stop())
  t.equal((await send(gateway.port, { path: '/t/acme/head' })).status, 200)
})

t.test('A runtime that does not respond in time returns 504', async (t) => {
  const { gateway, upstream, add } = await startSetting(t, { limits: { responseTimeout: 300 } })
  await add('acme')
  const { status, body } = await send(gateway.port, { path: '/t/acme/hang' })
  t.equal(status, 504)
  t.equal((JSON.parse(body) as { code: string }).code, 'RUNTIME_TIMEOUT')
  await until(() => upstream.open === 0, 'the end at the runtime')
})

t.test('A slow head and a slow body return 408', async (t) => {
  const { gateway, upstream, add } = await startSetting(t, { limits: { headTimeout: 150, bodyIdleTimeout: 150 } })
  await add('acme')
  for (const bytes of ['', 'GET /t/acme/head HT', 'GET /t/acme/head HTTP/1.1\r\nHost: localhost\r\nX-A']) {
    t.match(await sendRaw(gateway.port, bytes), /^HTTP\/1\.1 408 [^]*REQUEST_TIMEOUT/, JSON.stringify(bytes))
  }
  const post = 'POST /t/acme/sink HTTP/1.1\r\nHost: localhost\r\n'
  t.match(await sendRaw(gateway.port, `${post}Content-Length: 10\r\n\r\nabc`), /^HTTP\/1\.1 408 [^]*REQUEST_TIMEOUT/)
  t.match(
    await sendRaw(gateway.port, `${post}Transfer-Encoding: chunked\r\n\r\n3\r\nabc`),
    /^HTTP\/1\.1 408 [^]*REQUEST_TIMEOUT/,
  )
  t.match(
    await sendRaw(gateway.port, `${post}Expect: 100-continue\r\nContent-Length: 10\r\n\r\n`),
    /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 408 /,
  )
  await until(() => upstream.open === 0, 'the end at the runtime')
})

t.test('A slow body is accepted as long as bytes arrive', async (t) => {
  const { gateway, upstream, add } = await startSetting(t, { limits: { bodyIdleTimeout: 200 } })
  await add('acme')
  const socket = connect(gateway.port, '127.0.0.1')
  let got = ''
  socket.on('data', (chunk: Buffer) => (got += chunk.toString()))
  socket.write('POST /t/acme/sink HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n')
  for (let n = 1; n <= 10; n++) {
    socket.write('x')
    await until(() => upstream.received === n)
    await new Promise((resolve) => setTimeout(resolve, 40))
  }
  await until(() => got.includes('HTTP/1.1 200'))
  t.match(got, /\r\n\r\n10$|\r\n10\r\n/)
  socket.destroy()
})

t.test('The gateway closes a connection whose reader never returns', async (t) => {
  const { gateway, upstream, add } = await startSetting(t, { limits: { readerIdleTimeout: 150 } })
  await add('acme')
  const socket = connect(gateway.port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write('GET /t/acme/bytes/100000000 HTTP/1.1\r\nHost: localhost\r\n\r\n')
  socket.pause()
  await until(() => upstream.open === 1)
  await until(() => upstream.open === 0, 'the end at the runtime')
  t.equal(upstream.aborted, 1)
  socket.destroy()
})

t.test('A stop finishes requests in progress', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  await add('acme')
  const socket = connect(gateway.port, '127.0.0.1')
  let got = ''
  socket.on('data', (chunk: Buffer) => (got += chunk.toString()))
  socket.write('POST /t/acme/sink HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhello')
  await until(() => upstream.received === 5)
  const stopped = gateway.stop()
  await t.rejects(send(gateway.port, { path: '/t/acme/head' }), 'no new request is accepted')
  socket.write('world')
  await stopped
  t.match(got, /^HTTP\/1\.1 200 OK\r\n/)
})
