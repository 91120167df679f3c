// The bytes that http_fetch sends are counted as the host receives them, whatever becomes of the request.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import t from 'tap'
import { RunEgress } from '#tenant-runtime/functions/host/run-egress.ts'
import { listen } from '#test/support/listen.ts'
import { freePort } from '#test/support/postgres.ts'
import { makeAuthority } from '#test/support/tls.ts'
import { fetchFrom } from './support/fetching.ts'

/** Counts the bytes of one run. `expected` are the values that were recorded before the requests. */
function newEgress() {
  const expected: number[] = []
  return { expected, egress: new RunEgress(async (bytes) => void expected.push(bytes)) }
}

/** Counts the bytes that a server receives. @param respond is called with the end of each request */
function countBytes(respond: (request: IncomingMessage, response: ServerResponse) => void) {
  const received = { bytes: 0 }
  const listener = (request: IncomingMessage, response: ServerResponse) =>
    request.resume().once('end', () => {
      received.bytes += request.socket.bytesRead
      respond(request, response)
    })
  return { received, listener }
}

t.test('http_fetch counts the first line, the headers and the body of each request, byte for byte', async (t) => {
  const { received, listener } = countBytes(({ url = '', socket }, response) => {
    if (url === '/close') socket.destroy()
    else if (url.startsWith('/to/')) response.writeHead(Number(url.slice(4)), { location: '/ended' }).end('abc')
    else if (url !== '/silent') response.end('hello')
  })
  const port = await listen(t, createServer(listener))
  const hosts = [`api.example:${port}`]
  const url = (path: string) => `http://api.example:${port}${path}`
  for (const [what, request, body, requests] of [
    ['a plain GET', { url: url('/') }, '', 1],
    ['a query and characters that a URL encodes', { url: url('/ä b?c=ö&d=%41#e') }, '', 1],
    ['headers in Latin-1', { url: url('/'), headers: { 'X-Mine': 'ä\tö', 'User-Agent': 'me', empty: '' } }, '', 1],
    ['a DELETE without a body', { url: url('/'), method: 'DELETE' }, '', 1],
    ['an OPTIONS without a body', { url: url('/'), method: 'options' }, '', 1],
    ['a HEAD', { url: url('/'), method: 'HEAD' }, '', 1],
    ['a POST without a body', { url: url('/'), method: 'POST' }, '', 1],
    ['a body of two-byte characters', { url: url('/'), method: 'PUT' }, 'ä'.repeat(1_000), 1],
    ['a large body', { url: url('/'), method: 'PATCH' }, 'x'.repeat(3_000_000), 1],
    ['a DELETE with a body', { url: url('/'), method: 'DELETE' }, 'abc', 1],
    ['a redirect that becomes a GET', { url: url('/to/303'), method: 'POST' }, 'y'.repeat(500), 2],
    ['a redirect that repeats the body', { url: url('/to/307'), method: 'POST' }, 'y'.repeat(500), 2],
    ['a host that closes the connection', { url: url('/close'), method: 'POST' }, 'z'.repeat(700), 1],
  ] as const) {
    const { egress, expected } = newEgress()
    received.bytes = 0
    await fetchFrom(request, { hosts, body, egress })
    t.equal(egress.bytes, received.bytes, what)
    t.ok(received.bytes > body.length, what)
    t.same([expected.length, expected.at(-1)], [requests, received.bytes], `${what}: recorded before it was sent`)
  }
  const { egress } = newEgress()
  received.bytes = 0
  const timedOut = await fetchFrom({ url: url('/silent') }, { hosts, egress, signal: AbortSignal.timeout(200) })
  t.equal(timedOut.code, 'FETCH_FAILED')
  t.equal(egress.bytes, received.bytes, 'a host that never responds')
  t.ok(received.bytes > 0)
})

t.test('A request for which no connection is established counts nothing', async (t) => {
  const port = await freePort()
  const { egress, expected } = newEgress()
  const hosts = [`a.example:${port}`]
  const refused = await fetchFrom({ url: `http://a.example:${port}/`, method: 'POST' }, { hosts, body: 'abc', egress })
  t.match(refused, { code: 'FETCH_FAILED', message: /ECONNREFUSED/ })
  t.equal(egress.bytes, 0)
  t.equal(expected.length, 1)
  for (const url of ['http://other.example/', 'ftp://a.example/'])
    t.not((await fetchFrom({ url }, { hosts, egress })).code, '', url)
  t.same([egress.bytes, expected.length], [0, 1], 'a rejected request is not even recorded')
})

t.test('A request whose bytes cannot be recorded is not sent', async (t) => {
  const { received, listener } = countBytes((_request, response) => response.end())
  const port = await listen(t, createServer(listener))
  const egress = new RunEgress(async () => Promise.reject(new Error('no database')))
  await t.rejects(fetchFrom({ url: `http://a.example:${port}/` }, { hosts: [`a.example:${port}`], egress }), {
    message: 'no database',
  })
  t.same([received.bytes, egress.bytes], [0, 0])
})

t.test('Over TLS, the bytes before encryption count, and a failed handshake counts nothing', async (t) => {
  const authority = await makeAuthority(t.testdir({}))
  const { received, listener } = countBytes((_request, response) => response.end('secret'))
  const port = await listen(t, createTlsServer(await authority.issue('DNS:api.example'), listener))
  const of = async () => {
    const { egress } = newEgress()
    const { code } = await fetchFrom(
      { url: `https://api.example:${port}/x`, method: 'POST' },
      { hosts: [`api.example:${port}`], body: 'b'.repeat(9_000), egress },
    )
    return [code, egress.bytes]
  }
  t.same(await of(), ['FETCH_FAILED', 0], 'a certificate of an unknown authority')
  const known = getCACertificates()
  setDefaultCACertificates([...known, authority.certificate])
  t.teardown(() => setDefaultCACertificates(known))
  const [code, sent] = await of()
  t.equal(code, '')
  t.equal(sent, received.bytes)
  t.ok(received.bytes > 9_000)
})
