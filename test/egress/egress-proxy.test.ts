// The egress proxy: what a runtime reaches through it, and what a runtime that an attacker controls does not.
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { connect } from 'node:net'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates, TLSSocket } from 'node:tls'
import t from 'tap'
import { isReachable, readNetworks, tenantToken } from '@tenantry/contract'
import { readDestination } from '#gateway/egress/connect-request.ts'
import { RunEgress } from '#tenant-runtime/functions/host/run-egress.ts'
import { fetchFrom, none, serve } from '#test/functions/support/fetching.ts'
import { makeAuthority } from '#test/support/tls.ts'
import { until } from '#test/support/until.ts'
import { internalResponses, internalHosts, specialAddresses } from './support/addresses.ts'
import {
  internalToken,
  publicAddress,
  sendConnect,
  servePublic,
  servePublicly,
  startProxy,
  tenantA,
  tenantB,
} from './support/proxy.ts'

t.test('http_fetch reaches a public host through the proxy, and its bytes are counted once', async (t) => {
  const received = { bytes: 0 }
  const port = await servePublicly(t, (request, response) =>
    request.resume().once('end', () => {
      received.bytes += request.socket.bytesRead
      if (request.url === '/from') response.writeHead(307, { location: '/to' }).end()
      else response.writeHead(201, { 'x-more': '1' }).end(`to ${request.method} ${request.headers.host}`)
    }),
  )
  const { tunnelOf, lookups } = await startProxy(t)
  const hosts = [`api.example:${port}`]
  const expected: number[] = []
  const egress = new RunEgress(async (bytes) => void expected.push(bytes))
  const result = await fetchFrom(
    { url: `http://api.example:${port}/from`, method: 'POST' },
    { hosts, body: 'x'.repeat(100_000), egress, tunnel: tunnelOf(tenantA) },
  )
  t.match(result, { code: '', status: 201, headers: { 'x-more': '1' } })
  t.equal(result.body.toString(), `to POST api.example:${port}`)
  t.equal(egress.bytes, received.bytes, 'the bytes that the host received, of both requests')
  t.equal(expected.length, 2)
  t.same(lookups, ['api.example', 'api.example'], 'each request is a new connection whose name is resolved once')
  t.equal(
    (await fetchFrom({ url: `http://other.example:${port}` }, { hosts, tunnel: tunnelOf(tenantA) })).code,
    'HOST_NOT_ALLOWED',
  )
  t.equal(lookups.length, 2)
})

t.test('TLS is between the runtime and the host', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-egress-'))
  t.teardown(() => rm(directory, { recursive: true }))
  const authority = await makeAuthority(directory)
  const before = getCACertificates('default')
  setDefaultCACertificates([...before, authority.certificate])
  t.teardown(() => setDefaultCACertificates(before))
  const names: unknown[] = []
  const pair = await authority.issue('DNS:secure.example')
  const port = await servePublic(
    t,
    createTlsServer(pair, (request, response) => {
      if (request.socket instanceof TLSSocket) names.push(request.socket.servername)
      response.end('secret')
    }),
  )
  const { tunnelOf } = await startProxy(t)
  const fetchOver = (name: string) =>
    fetchFrom({ url: `https://${name}:${port}/` }, { hosts: [`${name}:${port}`], tunnel: tunnelOf(tenantA) })
  t.equal((await fetchOver('secure.example')).body.toString(), 'secret')
  t.same(names, ['secure.example'])
  t.match(await fetchOver('other.example'), { code: 'FETCH_FAILED', message: /ERR_TLS_CERT_ALTNAME_INVALID/ })
})

t.test('No host of the corpus is reached, by http_fetch or by CONNECT requests of an attacker', async (t) => {
  const { port: internal, seen } = await serve(t, (_request, response) => response.end())
  const { port, tunnelOf, reported } = await startProxy(t, {
    rules: { reachable: none },
    limits: { egressOpensPerSecond: 1_000, egressOpensBurst: 1_000 },
  })
  for (const host of internalHosts) {
    const url = `http://${host}:${internal}/`
    const hosts = [new URL(url).host]
    t.equal((await fetchFrom({ url }, { hosts, tunnel: tunnelOf(tenantA) })).code, 'ADDRESS_REJECTED', host)
    const { socket, status } = await sendConnect(port, `${host}:${internal}`)
    t.ok(status >= 400, `CONNECT ${host}: ${status}`)
    socket.destroy()
  }
  for (const address of specialAddresses) {
    const { socket, status } = await sendConnect(
      port,
      `${address.includes(':') ? `[${address}]` : address}:${internal}`,
    )
    // A name resolves to the public address of the tests, which this proxy does not allow either.
    t.ok(status >= 400, `CONNECT ${address}: ${status}`)
    socket.destroy()
  }
  for (const response of internalResponses) {
    const rebound = await startProxy(t, { rules: { reachable: none }, resolve: async () => response })
    t.match(await sendConnect(rebound.port, `a.example:${internal}`), { status: 403, code: 'ADDRESS_REJECTED' })
  }
  t.same(seen, [])
  t.equal(reported.length, 1, 'an operator reads about the tenant once a minute')
})

t.test('A redirect to an internal address is rejected', async (t) => {
  const { port: internal, seen } = await serve(t, (_request, response) => response.end())
  const port = await servePublicly(t, (_request, response) =>
    response.writeHead(302, { location: `http://internal.example:${internal}/` }).end(),
  )
  const resolve = async (name: string) => [name === 'internal.example' ? '127.0.0.1' : publicAddress]
  const { tunnelOf } = await startProxy(t, { resolve })
  const hosts = [`api.example:${port}`, `internal.example:${internal}`]
  const { code } = await fetchFrom({ url: `http://api.example:${port}/` }, { hosts, tunnel: tunnelOf(tenantA) })
  t.equal(code, 'ADDRESS_REJECTED')
  t.same(seen, [])
})

t.test('A name is resolved once, and the connection goes to the address that was checked', async (t) => {
  const port = await servePublicly(t, (_request, response) => response.end('reached'))
  let count = 0
  const { tunnelOf } = await startProxy(t, { resolve: async () => [count++ === 0 ? publicAddress : '127.0.0.1'] })
  const fetchAgain = () =>
    fetchFrom(
      { url: `http://rebinding.example:${port}` },
      { hosts: [`rebinding.example:${port}`], tunnel: tunnelOf(tenantA) },
    )
  t.equal((await fetchAgain()).body.toString(), 'reached')
  t.equal(count, 1)
  t.equal((await fetchAgain()).code, 'ADDRESS_REJECTED')
})

t.test('What the operator forbids is not reached, even if it is public or in an allowed network', async (t) => {
  const port = await servePublicly(t, (_request, response) => response.end())
  const { port: proxy } = await startProxy(t, {
    rules: {
      reachable: readNetworks(['127.0.0.0/8', '::ffff:127.0.0.0/104']),
      forbidden: readNetworks([publicAddress, '1.1.1.1']),
    },
  })
  for (const host of [publicAddress, '[::ffff:127.0.0.2]', '1.1.1.1', 'a.example'])
    t.match(await sendConnect(proxy, `${host}:${port}`), { status: 403, code: 'ADDRESS_REJECTED' }, host)
})

t.test('A caller needs a token, and a token allows only what it is for', async (t) => {
  const port = await servePublicly(t, (_request, response) => response.end())
  const storage = [{ hostname: publicAddress, port }]
  // Without `reachable`, only the rule about the storage allows the address.
  const { port: proxy } = await startProxy(t, { rules: { storage, reachable: none } })
  const target = `${publicAddress}:${port}`
  const ofA = tenantToken(internalToken, tenantA)
  for (const authorization of [
    '',
    'Bearer',
    'Bearer x',
    `Basic ${ofA}`,
    `Bearer ${ofA}x`,
    `Bearer ${ofA.replace(tenantA, tenantB)}`,
    `Bearer ${tenantToken('another-internal-token-of-another', tenantA)}`,
    `Bearer ${internalToken.slice(1)}`,
  ])
    t.match(await sendConnect(proxy, target, authorization), { status: 407, code: 'TOKEN_INVALID' }, authorization)
  t.match(await sendConnect(proxy, target), { status: 403 }, 'a tenant does not reach the storage')
  const byRegion = (destination: string) => sendConnect(proxy, destination, `Bearer ${internalToken}`)
  const { status, socket } = await byRegion(target)
  t.equal(status, 200, "the region's runtimes reach the storage")
  socket.destroy()
  for (const other of [`${publicAddress}:${port + 1}`, '1.1.1.1:443', 'a.example:443', `127.0.0.1:${proxy}`])
    t.match(await byRegion(other), { status: 403, code: 'ADDRESS_REJECTED' }, `and nothing else: ${other}`)
})

t.test('Only CONNECT requests with a host and a port are served', async (t) => {
  const { port } = await startProxy(t)
  for (const target of [
    'a.example',
    'a.example:0',
    'a.example:65536',
    'a.example:80x',
    'u@a.example:80',
    ':80',
    '[::1:80',
  ])
    t.match((await sendConnect(port, target)).status, 400, target)
  t.match(await sendConnect(port, 'mail.example:25'), { status: 403, code: 'ADDRESS_REJECTED' })
  for (const method of ['GET', 'POST'])
    t.equal((await fetch(`http://127.0.0.1:${port}/`, { method })).status, 405, method)
  for (const text of ['http://a.example:80', 'a.example:80/x', 'a b:80', '%61:80', '*:80x', 'a:080'])
    t.equal(readDestination(text), undefined, text)
  for (const [text, hostname] of [
    ['0x7f.1:80', '127.0.0.1'],
    ['2130706433:80', '127.0.0.1'],
    ['API.example:80', 'api.example'],
    ['[::FFFF:127.0.0.1]:80', '[::ffff:7f00:1]'],
  ] as const)
    t.same(readDestination(text), { hostname, port: 80 }, text)
})

t.test('Errors of the proxy reach the function as those of http_fetch', async (t) => {
  const addresses: Record<string, string[]> = { 'none.example': [] }
  const { tunnelOf, url } = await startProxy(t, { resolve: async (name) => addresses[name] ?? [publicAddress] })
  const fetchName = (name: string, tunnel = tunnelOf(tenantA)) =>
    fetchFrom({ url: `http://${name}:1/` }, { hosts: [`${name}:1`], tunnel })
  t.match(await fetchName('none.example'), { code: 'FETCH_FAILED', message: /"none.example" does not exist/ })
  t.match(await fetchName('closed.example'), { code: 'FETCH_FAILED', message: /CONNECT_FAILED/ })
  t.ok(url)
  const { proxy, tunnelOf: closedTunnel } = await startProxy(t)
  proxy.close()
  t.match(await fetchName('a.example', closedTunnel(tenantA)), { code: 'FETCH_FAILED', message: /ECONNREFUSED/ })
})

t.test('A tenant that floods the proxy leaves room for others', async (t) => {
  const server = createServer()
  server.on('connection', (socket) => socket.resume().on('error', () => undefined))
  const port = await servePublic(t, server)
  const { proxy, port: at } = await startProxy(t, {
    limits: {
      egressConnections: 6,
      egressConnectionsPerTenant: 4,
      egressHeads: 8,
      egressOpensBurst: 20,
      egressOpensPerSecond: 1,
    },
  })
  const target = `a.example:${port}`
  const asB = () => sendConnect(at, target, `Bearer ${tenantToken(internalToken, tenantB)}`)
  const ofA = await Promise.all(Array.from({ length: 20 }, () => sendConnect(at, target)))
  const open = ofA.filter(({ status }) => status === 200)
  t.equal(open.length, 3, 'never more than are still free')
  t.same(new Set(ofA.filter(({ status }) => status !== 200).map(({ code }) => code)), new Set(['EGRESS_BUSY']))
  const first = await asB()
  t.equal(first.status, 200)

  // Connections without a request head replace each other.
  const silent = Array.from({ length: 50 }, () => connect({ host: '127.0.0.1', port: at }).on('error', () => undefined))
  await Promise.all(silent.map((socket) => once(socket, 'connect')))
  first.socket.destroy()
  await until(() => proxy.shares.open === 3)
  const second = await asB()
  t.equal(second.status, 200)
  for (const socket of silent) socket.destroy()

  for (const { socket } of open) socket.destroy()
  await until(() => proxy.shares.open === 1)
  const again: number[] = []
  for (let n = 0; n < 30; n++) {
    const { status, socket } = await sendConnect(at, target)
    again.push(status)
    socket.destroy()
  }
  t.ok(again.includes(503), 'the rate of new connections')
  t.equal(proxy.shares.rejectedOfAll, 0)
})

t.test('The rate of bytes is that of a tenant, over all of its connections', async (t) => {
  const received = new Map<number, number>()
  const server = createServer()
  server.removeAllListeners('connection')
  server.on('connection', (socket) =>
    socket
      .on('error', () => undefined)
      .on('data', (chunk: Buffer) => {
        received.set(socket.remotePort ?? 0, (received.get(socket.remotePort ?? 0) ?? 0) + chunk.length)
      }),
  )
  const port = await servePublic(t, server)
  const { proxy, port: at } = await startProxy(t, {
    limits: { egressBytesPerSecond: 1_000, egressBytesBurst: 100_000 },
  })
  const target = `a.example:${port}`
  const flooding = await Promise.all([1, 2, 3].map(() => sendConnect(at, target)))
  for (const { socket } of flooding) socket.write(Buffer.alloc(2_000_000))
  const total = () => [...received.values()].reduce((sum, bytes) => sum + bytes, 0)
  await until(() => proxy.shares.waits >= 3)
  t.ok(total() < 400_000, `${total()} bytes have passed: the burst, and one chunk of each connection`)
  const other = await sendConnect(at, target, `Bearer ${tenantToken(internalToken, tenantB)}`)
  received.clear()
  other.socket.write(Buffer.alloc(50_000))
  await until(() => total() >= 50_000)
})

t.test('The addresses of the tests are special ones', async (t) => {
  t.notOk(isReachable(publicAddress, none))
})
