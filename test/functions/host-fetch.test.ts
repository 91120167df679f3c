// http_fetch: what it sends and receives, over redirects and TLS too, and how a fetch fails.
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer as createTlsServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates, TLSSocket } from 'node:tls'
import t from 'tap'
import { readNetworks } from '@tenantry/contract'
import { namesDefaultRoute } from '#tenant-runtime/functions/host/default-route.ts'
import { listen } from '#test/support/listen.ts'
import { makeAuthority } from '#test/support/tls.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { callHost, compileHostCaller } from './support/host-caller.ts'
import { deployFunction } from './support/deployed.ts'
import { fetchFrom, none, serve } from './support/fetching.ts'

t.test('http_fetch sends a request and returns the response', async (t) => {
  const { port, seen } = await serve(t, (_request, response) =>
    response
      .writeHead(201, {
        'content-type': 'text/x',
        'x-more': 'ä',
        'keep-alive': 'timeout=9',
        'proxy-authenticate': 'x',
        'set-cookie': ['a=1', 'b=2'],
      })
      .end('the\nresponse'),
  )
  const hosts = [`api.example:${port}`]
  const result = await fetchFrom(
    {
      method: 'put',
      url: `http://api.example:${port}/a/../b?c=d#e`,
      headers: { Authorization: 'Bearer x', 'X-Mine': '1' },
    },
    { hosts, body: 'the body' },
  )
  t.same([result.status, result.body.toString(), result.headers['content-type']], [201, 'the\nresponse', 'text/x'])
  t.same(
    ['keep-alive', 'proxy-authenticate', 'connection', 'transfer-encoding'].filter((name) => name in result.headers),
    [],
  )
  t.match(seen[0], {
    method: 'PUT',
    url: '/b?c=d',
    body: 'the body',
    headers: {
      host: `api.example:${port}`,
      authorization: 'Bearer x',
      'x-mine': '1',
      'content-length': '8',
      'user-agent': 'tenantry',
    },
  })
  t.match((await fetchFrom({ url: `http://api.example:${port}` }, { hosts })).status, 201, 'GET is the default')
  t.equal((await fetchFrom({ url: `http://other.example:${port}` }, { hosts })).code, 'HOST_NOT_ALLOWED')
  t.equal((await fetchFrom({ url: `http://api.example:${port}` }, { hosts: [] })).code, 'HOST_NOT_ALLOWED')
})

t.test('http_fetch rejects an invalid request and sends nothing', async (t) => {
  const { port, seen } = await serve(t, (_request, response) => response.end())
  const url = `http://a.example:${port}`
  const bad: (object | string)[] = [
    '',
    '[]',
    'null',
    '{',
    {},
    { url: 1 },
    { url: 'a.example' },
    { url: `ftp://a.example:${port}` },
    { url: `file:///etc/passwd` },
    { url: `http://u:p@a.example:${port}` },
    { url: `http://u@a.example:${port}` },
    { url: 'http://' },
    { url: `data:text/plain,x` },
    { url: `gopher://a.example:${port}` },
    { url, method: 'CONNECT' },
    { url, method: 'TRACE' },
    { url, method: 'G ET' },
    { url, method: 1 },
    { url, body: 'x' },
    { url, headers: [] },
    { url, headers: { a: 1 } },
    { url, headers: { 'a b': 'x' } },
    { url, headers: { a: 'x\r\nb: y' } },
    { url, headers: { a: 'x\ny' } },
    { url, headers: { a: '\0' } },
    { url, headers: { a: '€' } },
    { url, headers: { Host: 'b.example' } },
    { url, headers: { connection: 'x' } },
    { url, headers: { 'Content-Length': '1' } },
    { url, headers: { 'transfer-encoding': 'chunked' } },
    { url, headers: { upgrade: 'x' } },
    { url, headers: { expect: 'x' } },
    { url, headers: { 'proxy-authorization': 'x' } },
    { url, headers: { a: '1', A: '2' } },
    { url, headers: { a: 'x'.repeat(40_000) } },
    { url: `${url}/${'x'.repeat(9_000)}` },
    { url, headers: Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`h${n}`, ''])) },
    '{"url":"http://a.example","headers":{"__proto__":"x"}}',
  ]
  for (const request of bad)
    t.equal(
      (await fetchFrom(request, { hosts: [`a.example:${port}`, 'a.example', '*.example'] })).code,
      'INVALID_REQUEST',
      JSON.stringify(request).slice(0, 80),
    )
  t.equal(
    (await fetchFrom({ url }, { hosts: [`a.example:${port}`], body: 'x' })).code,
    'INVALID_REQUEST',
    'a GET with a body',
  )
  t.same(seen, [])
})

t.test('http_fetch checks the target of a redirect like that of the request', async (t) => {
  const { port, seen } = await serve(t, ({ url = '' }, response) => {
    const [, status = '', to = ''] = /^\/(\d{3})\/(.*)$/.exec(url) ?? []
    if (url.startsWith('/loop')) response.writeHead(302, { location: '/loop' }).end()
    else if (status === '') response.end('arrived')
    else response.writeHead(Number(status), { location: decodeURIComponent(to) }).end('x'.repeat(1_000))
  })
  const hosts = [`a.example:${port}`, `b.example:${port}`]
  const from = (status: number, to: string) => `http://a.example:${port}/${status}/${encodeURIComponent(to)}`
  const last = () => seen.at(-1)
  t.equal((await fetchFrom({ url: from(302, '/there') }, { hosts })).body.toString(), 'arrived')
  t.equal(
    (
      await fetchFrom(
        { url: from(301, `http://b.example:${port}/`), headers: { authorization: 'x', cookie: 'y', 'x-mine': 'z' } },
        { hosts },
      )
    ).status,
    200,
  )
  t.same(
    [last()?.headers.host, last()?.headers.authorization, last()?.headers.cookie, last()?.headers['x-mine']],
    [`b.example:${port}`, undefined, undefined, 'z'],
    'credentials are not sent to another host',
  )
  await fetchFrom({ url: from(303, '/'), method: 'PUT', headers: { 'content-type': 'a/b' } }, { hosts, body: 'body' })
  t.same([last()?.method, last()?.body, last()?.headers['content-type']], ['GET', '', undefined])
  await fetchFrom({ url: from(307, '/'), method: 'POST' }, { hosts, body: 'body' })
  t.same([last()?.method, last()?.body], ['POST', 'body'])
  const before = seen.length
  const away: [to: string, code: string][] = [
    [`http://c.example:${port}/`, 'HOST_NOT_ALLOWED'],
    ['http://169.254.169.254/latest', 'HOST_NOT_ALLOWED'],
    ['file:///etc/passwd', 'INVALID_REQUEST'],
    [`http://u:p@b.example:${port}/`, 'INVALID_REQUEST'],
    [`//c.example:${port}/`, 'HOST_NOT_ALLOWED'],
    ['http://[', 'INVALID_REQUEST'],
  ]
  for (const [to, code] of away) t.equal((await fetchFrom({ url: from(302, to) }, { hosts })).code, code, to)
  t.equal(seen.length, before + away.length, 'no redirect was followed')
  const inner = await fetchFrom(
    { url: from(302, `http://b.example:${port}/`) },
    {
      hosts,
      reachable: readNetworks(['127.0.0.1']),
      resolve: async (name) => [name === 'b.example' ? '127.0.0.2' : '127.0.0.1'],
    },
  )
  t.equal(inner.code, 'ADDRESS_REJECTED', 'a redirect to an allowed name with an inner address')
  const loop = seen.length
  t.equal((await fetchFrom({ url: `http://a.example:${port}/loop` }, { hosts })).code, 'TOO_MANY_REDIRECTS')
  t.equal(seen.length, loop + 6)
})

t.test("Over TLS, http_fetch requires the host's certificate, though it connects to an address", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-tls-'))
  t.teardown(() => rm(directory, { recursive: true }))
  const authority = await makeAuthority(directory)
  const received: unknown[] = []
  const server = createTlsServer(await authority.issue('DNS:api.example'), (request, response) => {
    received.push([request.socket instanceof TLSSocket ? request.socket.servername : undefined, request.headers.host])
    if (request.url === '/down') response.writeHead(302, { location: `http://api.example:${port}/` }).end()
    else response.end('secret')
  })
  const port = await listen(t, server)
  const hosts = [`api.example:${port}`, `other.example:${port}`, `127.0.0.1:${port}`]
  const of = (host: string, path = '') => fetchFrom({ url: `https://${host}:${port}/${path}` }, { hosts })
  t.match(
    await of('api.example'),
    { code: 'FETCH_FAILED', message: /CERT|SIGNATURE/ },
    'a certificate of an unknown authority',
  )
  const known = getCACertificates()
  setDefaultCACertificates([...known, authority.certificate])
  t.teardown(() => setDefaultCACertificates(known))
  t.equal((await of('api.example')).body.toString(), 'secret')
  t.same(received, [['api.example', `api.example:${port}`]])
  for (const host of ['other.example', '127.0.0.1'])
    t.match(await of(host), { code: 'FETCH_FAILED', message: /ALTNAME/ }, host)
  t.equal((await of('api.example', 'down')).code, 'INVALID_REQUEST', 'a redirect away from TLS is not followed')
  t.equal(received.length, 2)
})

t.test('http_fetch reports responses that are too large, cut off or missing', async (t) => {
  const megabyte = Buffer.alloc(1024 * 1024)
  const { port } = await serve(t, ({ url }, response) => {
    if (url === '/much') response.end(Buffer.concat(Array<Buffer>(7).fill(megabyte)))
    else if (url === '/fits') response.end(Buffer.concat(Array<Buffer>(5).fill(megabyte)))
    else if (url === '/endless') {
      const more = () => response.write(megabyte, (error) => error ?? more())
      more()
    } else if (url === '/cut') response.writeHead(200, { 'content-length': 100 }).write('a', () => response.destroy())
    else if (url === '/close') response.destroy()
    else if (url === '/upgrade') response.writeHead(101, { upgrade: 'x', connection: 'upgrade' }).end()
  })
  const hosts = [`a.example:${port}`]
  const of = (path: string, signal?: AbortSignal) =>
    fetchFrom({ url: `http://a.example:${port}${path}` }, { hosts, ...(signal === undefined ? {} : { signal }) })
  t.equal((await of('/much')).code, 'ANSWER_TOO_LARGE')
  t.equal((await of('/endless')).code, 'ANSWER_TOO_LARGE')
  t.equal((await of('/fits')).body.length, 5 * megabyte.length)
  t.match(await of('/cut'), { code: 'FETCH_FAILED' })
  t.match(await of('/close'), { code: 'FETCH_FAILED', message: /ECONNRESET/ })
  t.match(await of('/upgrade'), { code: 'FETCH_FAILED' })
  t.notMatch((await of('/close')).message, /127/, 'the message contains no address')
  t.equal((await of('/never', AbortSignal.timeout(100))).code, 'FETCH_FAILED', 'the fetch ends with the invocation')
  const resolving = fetchFrom(
    { url: `http://a.example:${port}` },
    { hosts, signal: AbortSignal.timeout(100), resolve: () => new Promise(() => undefined) },
  )
  t.equal((await resolving).code, 'FETCH_FAILED', 'the lookup of a name ends with the invocation, too')
})

t.test('http_fetch reports why it could not connect', async (t) => {
  const failing = (code: string) => async () =>
    Promise.reject(Object.assign(new Error('getaddrinfo of 10.0.0.2'), { code }))
  const of = (code: string, wayOut: boolean, reachable = none) =>
    fetchFrom(
      { url: 'http://a.example' },
      { hosts: ['a.example'], reachable, resolve: failing(code), hasWayOut: async () => wayOut },
    )
  for (const code of ['ENOTFOUND', 'ENODATA']) {
    t.match(await of(code, true), {
      code: 'FETCH_FAILED',
      message: 'http_fetch: The host name "a.example" does not exist.',
    })
  }
  for (const code of ['EAI_AGAIN', 'EAI_FAIL', 'ECONNREFUSED']) {
    const message = `http_fetch: The host name "a.example" could not be looked up (${code}). Retry later.`
    t.match(await of(code, true), { code: 'FETCH_FAILED', message })
  }
  const noWayOut = {
    code: 'NO_OUTBOUND_NETWORK',
    message: /^http_fetch: Functions of this installation run on a network without internet access/,
  }
  const inner = readNetworks(['10.0.0.0/8'])
  t.match(
    await of('EAI_AGAIN', false, inner),
    noWayOut,
    'names in the networks that the operator allows are still looked up',
  )
  t.match(await of('ENOTFOUND', false, inner), { code: 'FETCH_FAILED', message: /does not exist/ })
  let lookups = 0
  const resolve = async () => Promise.reject(new Error(`lookup ${lookups++}`))
  const closed = (url: string, hosts: string[]) =>
    fetchFrom({ url }, { hosts, reachable: none, resolve, hasWayOut: async () => false })
  t.match(await closed('http://a.example', ['a.example']), noWayOut)
  t.equal(lookups, 0, 'the fetch does not wait for a resolver that times out after seconds')
  t.equal((await closed('http://b.example', ['a.example'])).code, 'HOST_NOT_ALLOWED')
  t.equal((await closed('http://127.0.0.1', ['127.0.0.1'])).code, 'ADDRESS_REJECTED')
})

t.test('namesDefaultRoute finds whether a machine has a default route', async (t) => {
  const head = 'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n'
  const inner = 'eth0\t0000120A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n'
  const outer = 'eth0\t00000000\t010011AC\t0003\t0\t0\t0\t00000000\t0\t0\t0\n'
  const zeros = '0'.repeat(32)
  const loopback6 = `${zeros} 00 ${zeros} 00 ${zeros} ffffffff 00000001 00000000 00200200       lo\n`
  const outer6 = `${zeros} 00 ${zeros} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0\n`
  t.equal(namesDefaultRoute(head + inner, loopback6), false, 'a container on an internal network')
  t.equal(namesDefaultRoute(head, ''), false)
  t.equal(namesDefaultRoute(head + outer + inner, loopback6), true)
  t.equal(namesDefaultRoute(head + inner, outer6 + loopback6), true)
  t.equal(namesDefaultRoute(head + outer.replace('0003', '0203'), ''), false, 'a route that rejects does not count')
  const half = outer.replace('\t00000000\t0\t0\t0', '\t00000080\t0\t0\t0')
  t.equal(namesDefaultRoute(head + half, ''), false, 'a route to half of all addresses is not a default route')
})

t.test('A deployed function fetches from the hosts of its list', { timeout: 180_000 }, async (t) => {
  const { port, seen } = await serve(t, ({ body }, response) =>
    response.writeHead(200, { 'content-type': 'text/plain' }).end(`echo: ${body}`),
  )
  const wasm = await compileHostCaller()
  const open = await startRuntime(t, { mayReach: ['127.0.0.0/8'], resolve: async () => ['127.0.0.1'] })
  const tenant = await open.addTenant()
  await deployFunction(tenant, { name: 'host-caller', wasm, config: { http_hosts: [`api.example:${port}`] } })
  const fetched = await callHost(
    tenant,
    'host-caller',
    'ada',
    'fetch',
    JSON.stringify({ method: 'POST', url: `http://api.example:${port}/x` }),
    'hello',
  )
  t.match(fetched.text, /^{"status":200,"headers":{.*}}\necho: hello$/)
  t.equal(
    (await callHost(tenant, 'host-caller', 'ada', 'fetch', JSON.stringify({ url: `http://other.example:${port}/x` })))
      .code,
    'HOST_NOT_ALLOWED',
  )
  t.equal(seen.length, 1)
  const closed = await startRuntime(t)
  const other = await closed.addTenant()
  await deployFunction(other, {
    name: 'host-caller',
    wasm,
    config: { http_hosts: [`127.0.0.1:${port}`, `localhost:${port}`] },
  })
  for (const host of ['127.0.0.1', 'localhost'])
    t.equal(
      (await callHost(other, 'host-caller', 'ada', 'fetch', JSON.stringify({ url: `http://${host}:${port}/x` }))).code,
      'ADDRESS_REJECTED',
      host,
    )
  t.equal(seen.length, 1, "without the operator's permission functions reach nothing on this machine")
})
