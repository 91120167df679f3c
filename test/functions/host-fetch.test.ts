// http_fetch: which hosts and addresses are reached, by whatever name, notation or redirect; and what goes either way.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates, TLSSocket } from 'node:tls'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { readConfig } from '#tenant-runtime/config.ts'
import { isReachable, readNetworks } from '@tenantry/contract'
import { CallError } from '#tenant-runtime/functions/host/call-error.ts'
import { allowsHost, checkHost } from '#tenant-runtime/functions/host/http-hosts.ts'
import { namesDefaultRoute } from '#tenant-runtime/functions/host/default-route.ts'
import { fetchForFunction, type FetchDeps } from '#tenant-runtime/functions/host/http-fetch.ts'
import { effort, seed } from '#test/support/effort.ts'
import { listen } from '#test/support/listen.ts'
import { makeAuthority } from '#test/support/tls.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { askHost, compileAsker } from './support/asker.ts'
import { deployFunction } from './support/deployed.ts'

const none = readNetworks([])

t.test("addresses that are not the internet's are refused", async (t) => {
  const refused = [
    '0.0.0.0',
    '0.1.2.3',
    '10.0.0.1',
    '10.255.255.255',
    '100.64.0.1',
    '100.100.100.200',
    '100.127.255.255',
    '127.0.0.1',
    '127.1.2.3',
    '169.254.0.1',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.1',
    '192.0.0.192',
    '192.0.2.1',
    '192.88.99.1',
    '192.168.0.1',
    '192.168.255.255',
    '198.18.0.1',
    '198.19.255.255',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '239.255.255.255',
    '240.0.0.1',
    '255.255.255.255',
    '168.63.129.16',
    '::',
    '::1',
    '::2',
    '::127.0.0.1',
    '::ffff:127.0.0.1',
    '::ffff:10.0.0.1',
    '::ffff:8.8.8.8',
    '::ffff:7f00:1',
    '::ffff:0:127.0.0.1',
    '64:ff9b::7f00:1',
    '64:ff9b::8.8.8.8',
    '64:ff9b:1::1',
    '100::1',
    '2001::1',
    '2001:0:7f00:1::',
    '2001:db8::1',
    '2002:7f00:1::',
    '2002:a00:1::1',
    '2002:808:808::1',
    '3fff::1',
    '5f00::1',
    'fc00::1',
    'fd00:ec2::254',
    'fdff::1',
    'fe80::1',
    'fe80::1%eth0',
    'febf::1',
    'fec0::1',
    'ff02::1',
    'ff0e::1',
    '',
    'localhost',
    '8.8.8',
    '08.8.8.8',
    '2130706433',
    '8.8.8.8/32',
    ' 8.8.8.8',
    '1:2:3',
    '2606:4700::1111%eth0',
  ]
  for (const address of refused) t.notOk(isReachable(address, none), address)
  for (const address of [
    '1.1.1.1',
    '8.8.8.8',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '192.167.255.255',
    '223.255.255.255',
    '2606:4700:4700::1111',
    '2a00:1450:4001::1',
  ]) {
    t.ok(isReachable(address, none), address)
  }
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      const [a = 0, b = 0] = address.split('.').map(Number)
      const isPrivate =
        a === 0 ||
        a === 10 ||
        a === 127 ||
        a >= 224 ||
        (a === 100 && b >= 64 && b < 128) ||
        (a === 169 && b === 254) ||
        (a === 172 && b >= 16 && b < 32) ||
        (a === 192 && b === 168) ||
        (a === 198 && (b === 18 || b === 19))
      return (
        !isPrivate ||
        (!isReachable(address, none) &&
          !isReachable(`::ffff:${address}`, none) &&
          !isReachable(`64:ff9b::${address}`, none))
      )
    }),
    { seed, numRuns: effort({ small: 2_000, full: 100_000 }) },
  )
})

t.test('networks that the operator names are reached all the same, and only those', async (t) => {
  const networks = readNetworks(['10.1.0.0/16', 'fd12::/16', '127.0.0.1'])
  for (const address of ['10.1.0.1', '10.1.255.255', 'fd12::1', '127.0.0.1', '8.8.8.8'])
    t.ok(isReachable(address, networks), address)
  for (const address of ['10.0.255.255', '10.2.0.0', 'fd13::1', '127.0.0.2', '192.168.0.1', '::1'])
    t.notOk(isReachable(address, networks), address)
  for (const bad of [
    '10.1.0.0/33',
    'fd12::/129',
    '10.1/16',
    'a.example',
    '10.1.0.0/16/1',
    '10.1.0.0/',
    '10.1.0.0/-1',
    '/8',
  ])
    t.throws(() => readNetworks([bad]), /is no network/, bad)
})

t.test('the operator names networks in the environment, and is told of one that is none', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-config-'))
  t.teardown(() => rm(directory, { recursive: true }))
  const token = join(directory, 'token')
  await writeFile(token, 'x'.repeat(40))
  const read = (networks: string) =>
    readConfig({
      TENANTRY_CONTROL_URL: 'http://control',
      TENANTRY_INTERNAL_TOKEN_FILE: token,
      TENANTRY_DATA: '/data',
      TENANTRY_FUNCTIONS_MAY_REACH: networks,
    }).functionsMayReach
  t.ok(isReachable('10.1.2.3', read('10.1.0.0/16, fd12::/16')))
  t.ok(isReachable('fd12::3', read('10.1.0.0/16, fd12::/16')))
  t.notOk(isReachable('10.1.2.3', read('')))
  t.throws(() => read('10.1.0.0/16,intranet'), { message: /^TENANTRY_FUNCTIONS_MAY_REACH: "intranet" is no network/ })
})

t.test('hosts of the list', async (t) => {
  const allows = (host: string, url: string) => allowsHost([checkHost(host)], new URL(url))
  const good: [host: string, url: string][] = [
    ['api.example.com', 'https://api.example.com/x'],
    ['api.example.com', 'http://api.example.com'],
    ['API.example.com', 'https://api.EXAMPLE.com'],
    ['*.example.com', 'https://a.example.com'],
    ['*.example.com', 'https://a.b.example.com'],
    ['a.example:8080', 'http://a.example:8080'],
    ['a.example:443', 'https://a.example'],
    ['a.example:80', 'http://a.example'],
    ['bücher.example', 'https://xn--bcher-kva.example'],
    ['10.0.0.1:8080', 'http://10.0.0.1:8080'],
    ['10.0.0.1', 'http://0xa.1'],
    ['[::1]:81', 'http://[0:0::1]:81'],
  ]
  for (const [host, url] of good) t.ok(allows(host, url), `${host} ${url}`)
  const bad: [host: string, url: string][] = [
    ['example.com', 'https://a.example.com'],
    ['*.example.com', 'https://example.com'],
    ['*.example.com', 'https://aexample.com'],
    ['example.com', 'https://example.com.evil.example'],
    ['example.com', 'https://example.com.'],
    ['example.com', 'https://example.com:8443'],
    ['a.example:8080', 'https://a.example'],
    ['a.example:443', 'http://a.example'],
    ['a.example:80', 'https://a.example'],
    ['example.com', 'https://evil.example/example.com'],
  ]
  for (const [host, url] of bad) t.notOk(allows(host, url), `${host} ${url}`)
  for (const host of [
    '',
    '*',
    '*.',
    '.',
    'a b',
    'a/b',
    'a?b',
    'a#b',
    'u:p@a',
    'u@a',
    'https://a',
    '*.*.a',
    'a.*',
    '*a.example',
    '[::1',
    'a:0',
    'a:65536',
    'a:x',
    'a:',
    '*.[::1]',
    '*.1.2.3.4',
    'a\\b',
    '%61',
  ])
    t.throws(() => checkHost(host), SyntaxError, host)
})

interface Seen {
  method: string | undefined
  url: string | undefined
  headers: IncomingMessage['headers']
  body: string
}

/** A server on this machine that remembers what it was asked. */
async function serve(
  t: Test,
  answer: (request: Seen, response: ServerResponse) => void,
): Promise<{ port: number; seen: Seen[]; server: Server }> {
  const seen: Seen[] = []
  const server = createServer((request, response) => {
    let body = ''
    request
      .setEncoding('utf8')
      .on('data', (text: string) => (body += text))
      .once('end', () => {
        const one = { method: request.method, url: request.url, headers: request.headers, body }
        seen.push(one)
        answer(one, response)
      })
  })
  return { port: await listen(t, server), seen, server }
}

const loopback = readNetworks(['127.0.0.0/8'])

/** As a function would ask; every name is this machine unless `resolve` says more. */
async function ask(
  request: object | string,
  {
    body = '',
    hosts,
    signal = AbortSignal.timeout(10_000),
    ...deps
  }: Partial<FetchDeps> & { body?: string; hosts: string[]; signal?: AbortSignal },
) {
  const text = typeof request === 'string' ? request : JSON.stringify(request)
  try {
    const all = { resolve: async () => ['127.0.0.1'], hasWayOut: async () => true, reachable: loopback, ...deps }
    const answer = await fetchForFunction(all, hosts.map(checkHost), [Buffer.from(text), Buffer.from(body)], signal)
    const end = answer.indexOf('\n')
    const head = JSON.parse(answer.toString('utf8', 0, end)) as { status: number; headers: Record<string, string> }
    return { code: '', message: '', ...head, body: answer.subarray(end + 1) }
  } catch (error) {
    if (!(error instanceof CallError)) throw error
    return { code: error.code, message: error.message, status: 0, headers: {}, body: Buffer.alloc(0) }
  }
}

t.test('a request and its answer', async (t) => {
  const { port, seen } = await serve(t, (_request, response) =>
    response
      .writeHead(201, {
        'content-type': 'text/x',
        'x-more': 'ä',
        'keep-alive': 'timeout=9',
        'proxy-authenticate': 'x',
        'set-cookie': ['a=1', 'b=2'],
      })
      .end('the\nanswer'),
  )
  const hosts = [`api.example:${port}`]
  const answer = await ask(
    {
      method: 'put',
      url: `http://api.example:${port}/a/../b?c=d#e`,
      headers: { Authorization: 'Bearer x', 'X-Mine': '1' },
    },
    { hosts, body: 'the body' },
  )
  t.same([answer.status, answer.body.toString(), answer.headers['content-type']], [201, 'the\nanswer', 'text/x'])
  t.same(
    ['keep-alive', 'proxy-authenticate', 'connection', 'transfer-encoding'].filter((name) => name in answer.headers),
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
  t.match((await ask({ url: `http://api.example:${port}` }, { hosts })).status, 201, 'GET is meant')
  t.equal((await ask({ url: `http://other.example:${port}` }, { hosts })).code, 'HOST_NOT_ALLOWED')
  t.equal((await ask({ url: `http://api.example:${port}` }, { hosts: [] })).code, 'HOST_NOT_ALLOWED')
})

t.test('what is no request is told so, and nothing is sent', async (t) => {
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
      (await ask(request, { hosts: [`a.example:${port}`, 'a.example', '*.example'] })).code,
      'INVALID_REQUEST',
      JSON.stringify(request).slice(0, 80),
    )
  t.equal(
    (await ask({ url }, { hosts: [`a.example:${port}`], body: 'x' })).code,
    'INVALID_REQUEST',
    'a GET with a body',
  )
  t.same(seen, [])
})

t.test('inner addresses are not reached, however they are written', async (t) => {
  const { port, seen } = await serve(t, (_request, response) => response.end())
  const written = [
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0x7f.1',
    '0177.0.0.1',
    '017700000001',
    '0',
    '0.0.0.0',
    '127.0.0.1.',
    '①②⑦.0.0.1',
    '127。0。0。1',
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[0:0:0:0:0:ffff:7f00:1]',
    '[::127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
    '169.254.169.254',
    '[fd00:ec2::254]',
    '[fe80::1]',
  ]
  for (const host of written) {
    const url = `http://${host}:${port}/`
    // Even where the developer has written it into the list.
    const hosts = [new URL(url).host]
    t.equal(
      (await ask({ url }, { hosts, reachable: none, resolve: async () => Promise.reject(new Error('no name')) })).code,
      'ADDRESS_REFUSED',
      host,
    )
  }
  const named = (addresses: string[]) =>
    ask(
      { url: `http://a.example:${port}` },
      { hosts: [`a.example:${port}`], reachable: none, resolve: async () => addresses },
    )
  for (const addresses of [
    ['127.0.0.1'],
    ['10.0.0.1'],
    ['::1'],
    ['::ffff:127.0.0.1'],
    ['8.8.8.8', '127.0.0.1'],
    ['127.0.0.1', '8.8.8.8'],
    ['nonsense'],
  ])
    t.equal((await named(addresses)).code, 'ADDRESS_REFUSED', addresses.join(' '))
  t.equal((await named([])).code, 'FETCH_FAILED')
  t.same(seen, [])
})

t.test('a name is resolved once, and the connection goes to what was looked at', async (t) => {
  const { port, seen } = await serve(t, (_request, response) => response.end('reached'))
  let asked = 0
  // The second answer of a rebinding name would be an inner address.
  const resolve = async () => (asked++ === 0 ? ['127.0.0.1'] : ['127.0.0.2'])
  const answer = await ask(
    { url: `http://rebinding.example:${port}` },
    { hosts: [`rebinding.example:${port}`], reachable: readNetworks(['127.0.0.1']), resolve },
  )
  t.equal(answer.body.toString(), 'reached')
  t.equal(asked, 1)
  t.equal(
    (
      await ask(
        { url: `http://rebinding.example:${port}` },
        { hosts: [`rebinding.example:${port}`], reachable: readNetworks(['127.0.0.1']), resolve },
      )
    ).code,
    'ADDRESS_REFUSED',
  )
  t.equal(seen.length, 1)
})

t.test('redirects are looked at as the request was', async (t) => {
  const { port, seen } = await serve(t, ({ url = '' }, response) => {
    const [, status = '', to = ''] = /^\/(\d{3})\/(.*)$/.exec(url) ?? []
    if (url.startsWith('/loop')) response.writeHead(302, { location: '/loop' }).end()
    else if (status === '') response.end('arrived')
    else response.writeHead(Number(status), { location: decodeURIComponent(to) }).end('x'.repeat(1_000))
  })
  const hosts = [`a.example:${port}`, `b.example:${port}`]
  const from = (status: number, to: string) => `http://a.example:${port}/${status}/${encodeURIComponent(to)}`
  const last = () => seen.at(-1)
  t.equal((await ask({ url: from(302, '/there') }, { hosts })).body.toString(), 'arrived')
  t.equal(
    (
      await ask(
        { url: from(301, `http://b.example:${port}/`), headers: { authorization: 'x', cookie: 'y', 'x-mine': 'z' } },
        { hosts },
      )
    ).status,
    200,
  )
  t.same(
    [last()?.headers.host, last()?.headers.authorization, last()?.headers.cookie, last()?.headers['x-mine']],
    [`b.example:${port}`, undefined, undefined, 'z'],
    'credentials stay behind',
  )
  await ask({ url: from(303, '/'), method: 'PUT', headers: { 'content-type': 'a/b' } }, { hosts, body: 'body' })
  t.same([last()?.method, last()?.body, last()?.headers['content-type']], ['GET', '', undefined])
  await ask({ url: from(307, '/'), method: 'POST' }, { hosts, body: 'body' })
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
  for (const [to, code] of away) t.equal((await ask({ url: from(302, to) }, { hosts })).code, code, to)
  t.equal(seen.length, before + away.length, 'none was followed')
  const inner = await ask(
    { url: from(302, `http://b.example:${port}/`) },
    {
      hosts,
      reachable: readNetworks(['127.0.0.1']),
      resolve: async (name) => [name === 'b.example' ? '127.0.0.2' : '127.0.0.1'],
    },
  )
  t.equal(inner.code, 'ADDRESS_REFUSED', 'a redirect to an allowed name with an inner address')
  const loop = seen.length
  t.equal((await ask({ url: `http://a.example:${port}/loop` }, { hosts })).code, 'TOO_MANY_REDIRECTS')
  t.equal(seen.length, loop + 6)
})

t.test("over TLS the certificate must be the host's, though the connection goes to an address", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-tls-'))
  t.teardown(() => rm(directory, { recursive: true }))
  const authority = await makeAuthority(directory)
  const asked: unknown[] = []
  const server = createTlsServer(await authority.issue('DNS:api.example'), (request, response) => {
    asked.push([request.socket instanceof TLSSocket ? request.socket.servername : undefined, request.headers.host])
    if (request.url === '/down') response.writeHead(302, { location: `http://api.example:${port}/` }).end()
    else response.end('secret')
  })
  const port = await listen(t, server)
  const hosts = [`api.example:${port}`, `other.example:${port}`, `127.0.0.1:${port}`]
  const of = (host: string, path = '') => ask({ url: `https://${host}:${port}/${path}` }, { hosts })
  t.match(
    await of('api.example'),
    { code: 'FETCH_FAILED', message: /CERT|SIGNATURE/ },
    'of an authority that nobody knows',
  )
  const known = getCACertificates()
  setDefaultCACertificates([...known, authority.certificate])
  t.teardown(() => setDefaultCACertificates(known))
  t.equal((await of('api.example')).body.toString(), 'secret')
  t.same(asked, [['api.example', `api.example:${port}`]])
  for (const host of ['other.example', '127.0.0.1'])
    t.match(await of(host), { code: 'FETCH_FAILED', message: /ALTNAME/ }, host)
  t.equal((await of('api.example', 'down')).code, 'INVALID_REQUEST', 'nothing goes on without it')
  t.equal(asked.length, 2)
})

t.test('what the other side does wrong', async (t) => {
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
    ask({ url: `http://a.example:${port}${path}` }, { hosts, ...(signal === undefined ? {} : { signal }) })
  t.equal((await of('/much')).code, 'ANSWER_TOO_LARGE')
  t.equal((await of('/endless')).code, 'ANSWER_TOO_LARGE')
  t.equal((await of('/fits')).body.length, 5 * megabyte.length)
  t.match(await of('/cut'), { code: 'FETCH_FAILED' })
  t.match(await of('/close'), { code: 'FETCH_FAILED', message: /ECONNRESET/ })
  t.match(await of('/upgrade'), { code: 'FETCH_FAILED' })
  t.notMatch((await of('/close')).message, /127/, 'no address is told')
  t.equal((await of('/never', AbortSignal.timeout(100))).code, 'FETCH_FAILED', 'it ends with the invocation')
  const resolving = ask(
    { url: `http://a.example:${port}` },
    { hosts, signal: AbortSignal.timeout(100), resolve: () => new Promise(() => undefined) },
  )
  t.equal((await resolving).code, 'FETCH_FAILED', 'while the name is looked for, too')
})

t.test('a fetch that gets nowhere says why', async (t) => {
  const failing = (code: string) => async () =>
    Promise.reject(Object.assign(new Error('getaddrinfo of 10.0.0.2'), { code }))
  const of = (code: string, wayOut: boolean, reachable = none) =>
    ask(
      { url: 'http://a.example' },
      { hosts: ['a.example'], reachable, resolve: failing(code), hasWayOut: async () => wayOut },
    )
  for (const code of ['ENOTFOUND', 'ENODATA']) {
    t.match(await of(code, true), {
      code: 'FETCH_FAILED',
      message: 'http_fetch: the host name "a.example" does not exist',
    })
  }
  for (const code of ['EAI_AGAIN', 'EAI_FAIL', 'ECONNREFUSED']) {
    const message = `http_fetch: the host name "a.example" could not be looked up (${code}); try again later`
    t.match(await of(code, true), { code: 'FETCH_FAILED', message })
  }
  const noWayOut = { code: 'NO_OUTBOUND_NETWORK', message: /^http_fetch: outbound connections are not possible here/ }
  const inner = readNetworks(['10.0.0.0/8'])
  t.match(
    await of('EAI_AGAIN', false, inner),
    noWayOut,
    'names of networks that the operator named are looked up all the same',
  )
  t.match(await of('ENOTFOUND', false, inner), { code: 'FETCH_FAILED', message: /does not exist/ })
  let asked = 0
  const resolve = async () => Promise.reject(new Error(`asked ${asked++}`))
  const closed = (url: string, hosts: string[]) =>
    ask({ url }, { hosts, reachable: none, resolve, hasWayOut: async () => false })
  t.match(await closed('http://a.example', ['a.example']), noWayOut)
  t.equal(asked, 0, 'nobody waits for a resolver that gives up after seconds')
  t.equal((await closed('http://b.example', ['a.example'])).code, 'HOST_NOT_ALLOWED')
  t.equal((await closed('http://127.0.0.1', ['127.0.0.1'])).code, 'ADDRESS_REFUSED')
})

t.test('a machine without a default route has no way out', async (t) => {
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
  t.equal(namesDefaultRoute(head + outer.replace('0003', '0203'), ''), false, 'a route that rejects leads nowhere')
  const half = outer.replace('\t00000000\t0\t0\t0', '\t00000080\t0\t0\t0')
  t.equal(namesDefaultRoute(head + half, ''), false, 'half of all addresses are no default')
})

t.test('a deployed function fetches from the hosts of its list', { timeout: 180_000 }, async (t) => {
  const { port, seen } = await serve(t, ({ body }, response) =>
    response.writeHead(200, { 'content-type': 'text/plain' }).end(`you said ${body}`),
  )
  const wasm = await compileAsker()
  const open = await startRuntime(t, { mayReach: ['127.0.0.0/8'], resolve: async () => ['127.0.0.1'] })
  const tenant = await open.addTenant()
  await deployFunction(tenant, { name: 'asker', wasm, config: { http_hosts: [`api.example:${port}`] } })
  const fetched = await askHost(
    tenant,
    'asker',
    'ada',
    'fetch',
    JSON.stringify({ method: 'POST', url: `http://api.example:${port}/x` }),
    'hello',
  )
  t.match(fetched.text, /^{"status":200,"headers":{.*}}\nyou said hello$/)
  t.equal(
    (await askHost(tenant, 'asker', 'ada', 'fetch', JSON.stringify({ url: `http://other.example:${port}/x` }))).code,
    'HOST_NOT_ALLOWED',
  )
  t.equal(seen.length, 1)
  const closed = await startRuntime(t)
  const other = await closed.addTenant()
  await deployFunction(other, {
    name: 'asker',
    wasm,
    config: { http_hosts: [`127.0.0.1:${port}`, `localhost:${port}`] },
  })
  for (const host of ['127.0.0.1', 'localhost'])
    t.equal(
      (await askHost(other, 'asker', 'ada', 'fetch', JSON.stringify({ url: `http://${host}:${port}/x` }))).code,
      'ADDRESS_REFUSED',
      host,
    )
  t.equal(seen.length, 1, "without the operator's word nothing of this machine is reached")
})
