// Which headers of a client's request and of a runtime's response pass the gateway.
import t from 'tap'
import { parseIpv4Ranges } from '#gateway/tenants/ipv4-range.ts'
import { send, sendRaw, startSetting, token } from './support/gateway.ts'

interface Shown {
  headers: Record<string, string>
  body: string
}

t.test('Internal and forwarding headers of a client never reach the runtime', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  const route = await add('acme')
  const { body } = await send(gateway.port, {
    path: '/t/acme/head',
    headers: [
      'Host',
      'localhost:1234',
      'X-Tenantry-Internal',
      'guess',
      'x-tenantry-tenant',
      't_00000000000000000000',
      'X-TENANTRY-Base-Path',
      '/evil',
      'x-tenantry-anything',
      'x',
      'X-Forwarded-For',
      '6.6.6.6',
      'X-Forwarded-Proto',
      'https',
      'x-forwarded-host',
      'evil',
      'X-Forwarded-Port',
      '1',
      'Forwarded',
      'for=6.6.6.6',
      'X-Real-IP',
      '6.6.6.6',
      'X-Kept',
      'one',
      'X-Kept',
      'two',
      'Authorization',
      'Bearer a.b.c',
      'Cookie',
      'a=1',
    ],
  })
  const { headers } = JSON.parse(body) as Shown
  t.equal(headers['x-tenantry-internal'], token)
  t.equal(headers['x-tenantry-tenant'], route.tenant_id)
  t.equal(headers['x-tenantry-base-path'], '/t/acme')
  t.equal(headers['x-tenantry-anything'], undefined)
  t.equal(headers['x-forwarded-for'], '127.0.0.1')
  t.equal(headers['x-forwarded-proto'], 'http')
  t.equal(headers['x-forwarded-host'], 'localhost:1234')
  for (const name of ['forwarded', 'x-real-ip', 'x-forwarded-port']) t.equal(headers[name], undefined, name)
  t.equal(headers['x-kept'], 'one, two')
  t.equal(headers['authorization'], 'Bearer a.b.c')
  const names =
    upstream.seen[0]?.rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()) ?? []
  const once = names.filter(
    (name) => name.startsWith('x-tenantry-') || name.startsWith('x-forwarded-') || name === 'x-request-id',
  )
  t.equal(once.length, new Set(once).size, "each of the gateway's headers exists once")
})

t.test('Only a trusted proxy determines the address, protocol and host of the client', async (t) => {
  const forwarded = [
    'X-Forwarded-For',
    '6.6.6.6, 203.0.113.7',
    'X-Forwarded-Proto',
    'https',
    'X-Forwarded-Host',
    'acme.example.org',
    'X-Forwarded-Port',
    '1',
    'Forwarded',
    'for=6.6.6.6',
  ]
  const cases = [
    ['127.0.0.1', '203.0.113.7', 'https', 'acme.example.org'],
    ['127.0.0.2/31', '127.0.0.1', 'http', 'localhost:1234'],
  ] as const
  for (const [trusted, address, proto, host] of cases) {
    const { gateway, upstream, add } = await startSetting(t, { trustedProxies: parseIpv4Ranges(trusted) ?? [] })
    await add('acme')
    const { port } = gateway
    const headers = ['Host', 'localhost:1234', ...forwarded]
    await send(port, { path: '/t/acme/head', headers })
    await send(port, { path: '/t/acme/denied', headers: [...headers, 'Connection', 'Upgrade', 'Upgrade', 'raw'] })
    await send(port, {
      path: '/t/acme/early',
      method: 'PUT',
      headers: [...headers, 'Expect', '100-continue', 'Content-Length', '1'],
      body: 'x',
    })
    t.equal(upstream.seen.length, 3)
    for (const { url, headers } of upstream.seen) {
      t.equal(headers['x-forwarded-for'], address, `${trusted} ${url}`)
      t.equal(headers['x-forwarded-proto'], proto)
      t.equal(headers['x-forwarded-host'], host)
      for (const name of ['forwarded', 'x-forwarded-port']) t.equal(headers[name], undefined, name)
    }
  }
})

t.test('Hop-by-hop headers end at the gateway, with those that Connection names', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  await add('acme')
  await sendRaw(
    gateway.port,
    'POST /t/acme/head HTTP/1.1\r\nHost: localhost\r\nConnection: close, X-Secret, x-tenantry-internal, content-length, host\r\n' +
      'X-Secret: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: x\r\n' +
      'Trailer: x\r\nContent-Length: 3\r\n\r\nabc',
  )
  const headers = upstream.seen[0]?.headers ?? {}
  for (const name of [
    'x-secret',
    'keep-alive',
    'te',
    'proxy-connection',
    'proxy-authorization',
    'trailer',
    'upgrade',
  ]) {
    t.equal(headers[name], undefined, name)
  }
  t.equal(headers['x-tenantry-internal'], token)
  t.equal(headers['content-length'], '3')
})

t.test('A tenant does not receive the cookie of the console, which browsers send to all ports of a host', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  await add('acme')
  const cookieOf = async (cookie: string) => {
    await send(gateway.port, { path: '/t/acme/head', headers: ['Host', 'localhost', 'Cookie', cookie] })
    return upstream.seen.at(-1)?.headers['cookie']
  }
  t.equal(await cookieOf('a=1; tenantry_console=secret; b=2'), 'a=1; b=2')
  t.equal(await cookieOf('tenantry_console=secret; b=tenantry_console'), 'b=tenantry_console')
  t.equal(await cookieOf('tenantry_console=secret'), undefined)
  t.equal(await cookieOf('a=1;b=2'), 'a=1;b=2')
})

t.test('The gateway keeps a valid request ID of the client, and otherwise creates one', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  await add('acme')
  const idOf = async (headers: string[]) => {
    const response = await send(gateway.port, { path: '/t/acme/head', headers: ['Host', 'localhost', ...headers] })
    t.equal(response.headers['x-request-id'], upstream.seen.at(-1)?.headers['x-request-id'], 'the same on both sides')
    return response.headers['x-request-id']
  }
  t.equal(await idOf(['X-Request-Id', 'abc-123']), 'abc-123')
  t.match(await idOf([]), /^[0-9a-f-]{36}$/)
  t.match(await idOf(['X-Request-Id', 'has space']), /^[0-9a-f-]{36}$/)
  t.match(await idOf(['X-Request-Id', 'x'.repeat(129)]), /^[0-9a-f-]{36}$/)
  t.match(await idOf(['X-Request-Id', 'a', 'X-Request-Id', 'b']), /^[0-9a-f-]{36}$/)
})

t.test('A response of a runtime passes unchanged, except connection, framing and internal headers', async (t) => {
  const { gateway, add } = await startSetting(t)
  await add('acme')
  const odd = await send(gateway.port, { path: '/t/acme/odd', headers: { 'x-request-id': 'mine' } })
  t.equal(odd.headers['x-named'], undefined)
  t.equal(odd.headers['x-tenantry-secret'], undefined)
  t.equal(odd.headers['x-request-id'], 'mine')
  t.same(odd.headers['set-cookie'], ['a=1', 'b=2'])
  t.equal(odd.headers['x-kept'], 'ünï')
  t.equal(odd.body, 'odd')
  const sized = await send(gateway.port, { path: '/t/acme/bytes/5' })
  t.equal(sized.headers['content-length'], '5')
  t.equal(sized.headers['transfer-encoding'], undefined)
  t.equal(sized.rawHeaders.filter((name) => name.toLowerCase() === 'date').length, 1)
  const chunked = await send(gateway.port, { path: '/t/acme/chunked/5' })
  t.equal(chunked.headers['transfer-encoding'], 'chunked')
  t.equal(chunked.body, 'xxxxx')
  const trailers = await send(gateway.port, { path: '/t/acme/trailers' })
  t.equal(trailers.headers.trailer, undefined)
  t.equal(trailers.body, 'body')
})

t.test('A response without a body keeps the connection usable', async (t) => {
  const { gateway, add } = await startSetting(t)
  await add('acme')
  const head = (method: string, path: string) => `${method} /t/acme${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
  const got = await sendRaw(
    gateway.port,
    head('HEAD', '/bytes/5') +
      head('GET', '/status/204') +
      head('GET', '/status/304') +
      head('DELETE', '/head') +
      head('GET', '/bytes/3'),
    { waitFor: /xxx$/ },
  )
  const statuses = [...got.matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => match[1])
  t.same(statuses, ['200', '204', '304', '200', '200'], 'in the order of the requests')
  t.match(got, /^HTTP\/1\.1 200 OK\r\n(?:[^\r]+\r\n)*content-length: 5\r\n(?:[^\r]+\r\n)*\r\nHTTP\/1\.1 204/)
})

t.test('Interim responses reach the client', async (t) => {
  const { gateway, add } = await startSetting(t)
  await add('acme')
  const got = await sendRaw(gateway.port, 'GET /t/acme/hints HTTP/1.1\r\nHost: localhost\r\n\r\n', {
    waitFor: /hinted/,
  })
  t.match(got, /^HTTP\/1\.1 103 Early Hints\r\nlink: <\/style\.css>; rel=preload\r\n\r\nHTTP\/1\.1 200 OK\r\n/)
})

t.test('A body for an HTTP/1.0 client ends with the connection', async (t) => {
  const { gateway, add } = await startSetting(t)
  await add('acme')
  const got = await sendRaw(gateway.port, 'GET /t/acme/chunked/5 HTTP/1.0\r\nHost: localhost\r\n\r\n')
  t.match(got, /^HTTP\/1\.1 200 OK\r\n/)
  t.notMatch(got, /transfer-encoding/i)
  t.match(got, /\r\n\r\nxxxxx$/)
})
