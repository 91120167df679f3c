// Requests that two parsers could read differently. The gateway rejects them, and nothing of them reaches a runtime.
import fc from 'fast-check'
import t from 'tap'
import { effort, seed } from '#test/support/effort.ts'
import { send, sendRaw, startSetting } from './support/gateway.ts'

const hidden = 'GET /t/acme/head/hidden HTTP/1.1\r\nHost: localhost\r\n\r\n'
const post = (headers: string, body = '') => `POST /t/acme/sink HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n${body}`

/** The status and code of each rejection. The parser's own rejections are MALFORMED_REQUEST. */
const corpus: [name: string, bytes: string, status: number, code?: string][] = [
  [
    'Content-Length and Transfer-Encoding',
    post('Content-Length: 4\r\nTransfer-Encoding: chunked\r\n', `0\r\n\r\n${hidden}`),
    400,
  ],
  [
    'Transfer-Encoding and Content-Length',
    post('Transfer-Encoding: chunked\r\nContent-Length: 4\r\n', `0\r\n\r\n${hidden}`),
    400,
  ],
  ['two equal Content-Lengths', post('Content-Length: 3\r\nContent-Length: 3\r\n', 'abc'), 400],
  ['two different Content-Lengths', post(`Content-Length: 0\r\nContent-Length: ${hidden.length}\r\n`, hidden), 400],
  ['a list of Content-Lengths', post('Content-Length: 3, 3\r\n', 'abc'), 400],
  ['a signed Content-Length', post('Content-Length: +3\r\n', 'abc'), 400],
  ['a negative Content-Length', post('Content-Length: -3\r\n', 'abc'), 400],
  ['a hexadecimal Content-Length', post('Content-Length: 0x3\r\n', 'abc'), 400],
  ['an empty Content-Length', post('Content-Length: \r\n', 'abc'), 400],
  ['a huge Content-Length', post('Content-Length: 99999999999999999999\r\n', 'abc'), 400],
  ['a second transfer coding', post('Transfer-Encoding: gzip, chunked\r\n', '0\r\n\r\n'), 400, 'INVALID_FRAMING'],
  ['chunked twice', post('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'), 400],
  ['chunked not last', post('Transfer-Encoding: chunked, identity\r\n', '0\r\n\r\n'), 400],
  ['identity', post('Transfer-Encoding: identity\r\n', 'abc'), 400],
  ['a misspelt coding', post('Transfer-Encoding: xchunked\r\n', '0\r\n\r\n'), 400],
  ['a quoted coding', post('Transfer-Encoding: "chunked"\r\n', '0\r\n\r\n'), 400],
  ['a vertical tab before the coding', post('Transfer-Encoding: \x0bchunked\r\n', '0\r\n\r\n'), 400],
  ['a space before the colon', post('Transfer-Encoding : chunked\r\n', '0\r\n\r\n'), 400],
  ['a folded header', post('Transfer-Encoding:\r\n chunked\r\n', '0\r\n\r\n'), 400],
  [
    'chunked in HTTP/1.0',
    'POST /t/acme/sink HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    400,
    'INVALID_FRAMING',
  ],
  ['a bare line feed in the head', 'POST /t/acme/sink HTTP/1.1\nHost: localhost\n\n', 400],
  ['a bare carriage return in a value', post('X-A: b\rContent-Length: 3\r\n', 'abc'), 400],
  ['a NUL in a value', post('X-A: \0\r\n'), 400],
  ['a NUL in the path', 'GET /t/acme/\0 HTTP/1.1\r\nHost: localhost\r\n\r\n', 400],
  ['a header without a name', post(': x\r\n'), 400],
  ['a header without a colon', post('Content-Length\r\n'), 400],
  ['no Host', 'GET /t/acme/head HTTP/1.1\r\n\r\n', 400, 'INVALID_HOST'],
  ['no Host in HTTP/1.0', 'GET /t/acme/head HTTP/1.0\r\n\r\n', 400, 'INVALID_HOST'],
  ['an empty Host', 'GET /t/acme/head HTTP/1.1\r\nHost:\r\n\r\n', 400, 'INVALID_HOST'],
  ['two Hosts', 'GET /t/acme/head HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n', 400, 'INVALID_HOST'],
  ['a Host with a path', 'GET /t/acme/head HTTP/1.1\r\nHost: localhost/x\r\n\r\n', 400, 'INVALID_HOST'],
  ['a Host with credentials', 'GET /t/acme/head HTTP/1.1\r\nHost: a@localhost\r\n\r\n', 400, 'INVALID_HOST'],
  [
    'an absolute target of another host',
    'GET http://other/t/acme/head HTTP/1.1\r\nHost: localhost\r\n\r\n',
    400,
    'INVALID_TARGET',
  ],
  ['an unknown method', 'SMUGGLE /t/acme/head HTTP/1.1\r\nHost: localhost\r\n\r\n', 400],
  ['HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
  ['HTTP/1.2', 'GET /t/acme/head HTTP/1.2\r\nHost: localhost\r\n\r\n', 400],
  ['HTTP/0.9', 'GET /t/acme/head\r\n\r\n', 400, 'INVALID_HOST'],
  ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400],
  ['CONNECT', 'CONNECT acme.localhost:80 HTTP/1.1\r\nHost: acme.localhost\r\n\r\n', 405, 'METHOD_NOT_ALLOWED'],
  ['another expectation', post('Expect: 200-ok\r\nContent-Length: 3\r\n', 'abc'), 417, 'EXPECTATION_FAILED'],
  ['headers over 16 KB', post(`X-A: ${'a'.repeat(16_400)}\r\n`), 431, 'HEADERS_TOO_LARGE'],
  ['headers far over 16 KB', post(`X-A: ${'a'.repeat(200_000)}\r\n`), 431, 'HEADERS_TOO_LARGE'],
  ['many small headers', post('X-A: a\r\n'.repeat(3_000)), 431, 'HEADERS_TOO_LARGE'],
  ['a URL over 64 KB', `GET /t/acme/${'a'.repeat(65_536)} HTTP/1.1\r\nHost: localhost\r\n\r\n`, 414, 'URL_TOO_LONG'],
]

t.test('Ambiguous requests are rejected with the common error, and end the connection', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  await add('acme')
  for (const [name, bytes, status, code = status === 400 ? /^(?:MALFORMED_REQUEST|INVALID_FRAMING)$/ : ''] of corpus) {
    const got = await sendRaw(gateway.port, bytes)
    const [head = '', body = ''] = got.split('\r\n\r\n')
    t.match(head, new RegExp(`^HTTP/1\\.1 ${status} `), name)
    t.match(head, /^connection: close$/im, name)
    t.match(JSON.parse(body === '' ? '{}' : body), { statusCode: String(status), code }, name)
    t.equal(got.match(/HTTP\/1\.1 \d{3}/g)?.length, 1, `${name}: one response`)
  }
  t.same(
    upstream.seen.map(({ url }) => url),
    [],
    'nothing reached the runtime',
  )
})

t.test('An invalid chunked body ends its request on both sides', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  await add('acme')
  const bodies = [
    `3\r\nabcX\r\n0\r\n\r\n`,
    `zz\r\nabc\r\n0\r\n\r\n`,
    `-1\r\n\r\n`,
    `3 \r\nabc\r\n0\r\n\r\n`,
    `fffffffffffffffff\r\nabc`,
    '3\nabc\n0\n\n',
  ]
  for (const body of bodies) {
    const got = await sendRaw(gateway.port, post('Transfer-Encoding: chunked\r\n', body + hidden))
    t.match(got, /^HTTP\/1\.1 400 /, JSON.stringify(body))
    t.equal(got.match(/HTTP\/1\.1 \d{3}/g)?.length, 1, 'one response')
  }
  t.notOk(
    upstream.seen.some(({ url }) => url.includes('hidden')),
    'the hidden request reached no runtime',
  )
})

t.test('Unusual but unambiguous requests pass', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  await add('acme')
  const passes = [
    post('Transfer-Encoding: Chunked\r\n', '3;ext=1\r\nabc\r\n0\r\nX-Trailer: 1\r\n\r\n'),
    post('Content-Length: 003\r\n', 'abc'),
    `\r\n${post('Content-Length: 3\r\n', 'abc')}`,
    `GET /t/acme/head/${'a'.repeat(65_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    `GET /t/acme/head HTTP/1.1\r\nHost: localhost\r\nX-A: ${'a'.repeat(16_000)}\r\n\r\n`,
    'GET /t/acme/head HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: x\r\n\r\n',
  ]
  for (const bytes of passes) {
    const got = await sendRaw(
      gateway.port,
      bytes.replace('Host: localhost\r\n', 'Host: localhost\r\nConnection: close\r\n'),
    )
    t.match(got, /^HTTP\/1\.1 200 /, JSON.stringify(bytes.slice(0, 100)))
  }
  t.equal(upstream.seen.length, passes.length)
  t.equal(upstream.seen[0]?.headers['x-trailer'], undefined)
  t.equal(upstream.seen.at(-1)?.headers['http2-settings'], undefined)
  t.equal(upstream.seen.at(-1)?.headers.upgrade, undefined)
})

t.test('With random requests the gateway continues, and never shows another tenant to the runtime', async (t) => {
  const { gateway, upstream, add, errors } = await startSetting(t, {
    limits: { headTimeout: 50, bodyIdleTimeout: 50, continueTimeout: 20 },
  })
  const route = await add('acme')
  const line = fc.constantFrom(
    'Host: localhost',
    'Host: acme.localhost',
    'Content-Length: 3',
    'Content-Length: 0',
    'Transfer-Encoding: chunked',
    'Expect: 100-continue',
    'Connection: Upgrade',
    'Connection: close',
    'Connection: keep-alive, host',
    'Upgrade: websocket',
    'Upgrade: raw',
    'x-tenantry-tenant: t_00000000000000000000',
    'X-TENANTRY-INTERNAL: x',
    'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
    'Sec-WebSocket-Version: 13',
    ' folded',
    'x: \xff\x80',
    'y:',
  )
  const request = fc
    .tuple(
      fc.constantFrom('GET', 'POST', 'HEAD', 'OPTIONS', 'DELETE', 'CONNECT', 'get', 'PUT'),
      fc.constantFrom(
        '/t/acme/sink',
        '/t/acme/raw',
        '/t/acme/status/204',
        '/sink',
        '/t/acme/early',
        'http://localhost/t/acme/head',
        '*',
        '/t/acme/internal/v1/live',
        '/t/acme/half',
      ),
      fc.constantFrom('HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0', 'HTTP/2.0'),
      fc.array(line, { maxLength: 7 }),
      fc.constantFrom('', 'abc', '3\r\nabc\r\n0\r\n\r\n', '0\r\n\r\n', '\r\n', '\0'),
    )
    .map(
      ([method, target, version, lines, body]) =>
        `${method} ${target} ${version}\r\n${lines.map((text) => `${text}\r\n`).join('')}\r\n${body}`,
    )
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 3 }), async (requests) => {
      await sendRaw(gateway.port, requests.join(''), { waitFor: /\r\n\r\n/ })
    }),
    { seed, numRuns: effort({ small: 300, full: 20_000 }) },
  )
  t.equal((await send(gateway.port, { path: '/t/acme/bytes/3' })).body, 'xxx')
  t.ok(upstream.seen.length > 0, `${upstream.seen.length} reached the runtime`)
  t.ok(upstream.seen.every(({ headers }) => headers['x-tenantry-tenant'] === route.tenant_id))
  // By host name the whole path belongs to the tenant, so `/t/acme/…` is a path that nothing serves.
  t.same(
    upstream.seen.filter(({ url }) => /^\/+internal/i.test(url)).map(({ url }) => url),
    [],
    'no internal path was reached',
  )
  t.same(errors, [], 'the gateway reported no error')
})
