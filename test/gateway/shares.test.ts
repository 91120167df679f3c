// A tenant and a client address have a share of what the gateway does at a time, and others always find room.
import { once } from 'node:events'
import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { ClientAddress } from '#gateway/clients/client-address.ts'
import { RequestShares } from '#gateway/clients/request-shares.ts'
import { BodyBudget } from '#gateway/forward/body-budget.ts'
import { parseIpv4Ranges } from '#gateway/tenants/ipv4-range.ts'
import { effort } from '#test/support/effort.ts'
import { until } from '#test/support/until.ts'
import { send, startSetting, token, type Setting } from './support/gateway.ts'
import { megabyte } from './support/upstream.ts'

const attacker = '127.0.0.81'
const neighbour = '127.0.0.82'

interface ClientOptions {
  name: string
  path: string
  from: string
  method?: string
  body?: Buffer
  headers?: Record<string, string>
}

function open(
  t: Test,
  { gateway }: Setting,
  { name, path, from, method = 'GET', body, headers }: ClientOptions,
): ClientRequest {
  const request = httpRequest({
    agent: false,
    host: '127.0.0.1',
    port: gateway.port,
    path: `/t/${name}${path}`,
    method,
    localAddress: from,
    headers: { ...headers, ...(method === 'POST' ? { 'content-length': body?.length ?? 20_000_000 } : {}) },
  })
  request.on('error', () => undefined)
  if (method === 'POST') request.write(body ?? 'the first bytes of a slow body')
  else request.end()
  t.teardown(() => request.destroy())
  return request
}

async function responseTo(request: ClientRequest): Promise<{ status: number; code: unknown; retryAfter: unknown }> {
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  let body = ''
  for await (const chunk of response) body += String(chunk)
  const { code } = /^\{/.test(body) ? (JSON.parse(body) as { code?: unknown }) : {}
  return { status: response.statusCode ?? 0, code, retryAfter: response.headers['retry-after'] }
}

t.test('Slow bodies to one tenant use at most its share, and others are served', async (t) => {
  const limit = effort({ small: 20, full: 1_000 })
  const setting = await startSetting(t, {
    limits: {
      requests: 4 * limit,
      requestsPerTenant: limit,
      requestsPerAddress: 4 * limit,
      connectionsPerAddress: 5_000,
    },
  })
  await setting.add('victim')
  await setting.add('other')
  const slow = { name: 'victim', path: '/sink', from: attacker, method: 'POST' }
  const held = Array.from({ length: limit }, () => open(t, setting, slow))
  await until(() => setting.upstream.open === limit, 'the slow requests')
  t.same(await responseTo(open(t, setting, { ...slow, from: neighbour })), {
    status: 503,
    code: 'TENANT_BUSY',
    retryAfter: '1',
  })
  for (const from of [attacker, neighbour])
    t.equal((await responseTo(open(t, setting, { name: 'other', path: '/bytes/3', from }))).status, 200)
  t.equal(setting.upstream.open, limit)
  held[0]?.destroy()
  await until(
    async () => (await send(setting.gateway.port, { path: '/t/victim/bytes/3' })).status === 200,
    'a free position',
  )
})

t.test('Requests of one client address use at most its share, whatever their tenants', async (t) => {
  const limit = 12
  const setting = await startSetting(t, { limits: { requestsPerAddress: limit } })
  const names = ['first', 'second', 'third']
  for (const name of names) await setting.add(name)
  for (let n = 0; n < limit; n++) open(t, setting, { name: names[n % 3] ?? '', path: '/hang', from: attacker })
  await until(() => setting.upstream.open === limit, 'the requests in progress')
  t.same(await responseTo(open(t, setting, { name: 'first', path: '/bytes/3', from: attacker })), {
    status: 429,
    code: 'CLIENT_BUSY',
    retryAfter: '1',
  })
  t.equal((await responseTo(open(t, setting, { name: 'first', path: '/bytes/3', from: neighbour }))).status, 200)
})

t.test("Behind a trusted proxy, the client's own address has the share", async (t) => {
  const setting = await startSetting(t, {
    limits: { requestsPerAddress: 2 },
    trustedProxies: parseIpv4Ranges(attacker) ?? [],
  })
  await setting.add('acme')
  const through = (client: string) => ({ name: 'acme', from: attacker, headers: { 'x-forwarded-for': client } })
  for (let n = 0; n < 2; n++) open(t, setting, { ...through('192.0.2.1'), path: '/hang' })
  await until(() => setting.upstream.open === 2)
  t.equal((await responseTo(open(t, setting, { ...through('192.0.2.1'), path: '/bytes/3' }))).code, 'CLIENT_BUSY')
  t.equal((await responseTo(open(t, setting, { ...through('192.0.2.2'), path: '/bytes/3' }))).status, 200)
})

t.test('WebSockets use the share of their tenant until they end', async (t) => {
  const setting = await startSetting(t, { limits: { requestsPerTenant: 2 } })
  await setting.add('acme')
  const url = `ws://127.0.0.1:${setting.gateway.port}/t/acme/ws`
  const clients = [new WebSocket(url), new WebSocket(url)]
  await Promise.all(clients.map((client) => once(client, 'open')))
  t.match(await send(setting.gateway.port, { path: '/t/acme/bytes/3' }), { status: 503, body: /TENANT_BUSY/ })
  clients[0]?.close()
  await until(
    async () => (await send(setting.gateway.port, { path: '/t/acme/bytes/3' })).status === 200,
    'a free position',
  )
  clients[1]?.close()
})

t.test('A rejection at a share uses neither the rate nor the month, and is counted apart', async (t) => {
  const setting = await startSetting(t, { limits: { requestsPerTenant: 1 } })
  const { tenant_id: id } = await setting.add('acme', {
    limits: { requests_per_month: null, connections: null, rate: { per_second: 1, burst: 2 } },
  })
  const totalOf = (name: string) => setting.control.total(({ meter, tenant_id }) => meter === name && tenant_id === id)
  open(t, setting, { name: 'acme', path: '/hang', from: attacker })
  await until(() => setting.upstream.open === 1)
  for (let n = 0; n < 5; n++) t.match((await send(setting.gateway.port, { path: '/t/acme/head' })).body, /TENANT_BUSY/)
  await until(() => totalOf('refused_requests') === 5, 'the counts')
  t.equal(totalOf('requests'), 0)
})

t.test('Where several tenants and addresses hold all they may, one more finds room', (t) => {
  for (const holders of [1, 2, 3, 6]) {
    const shares = new RequestShares({ requests: 400, requestsPerTenant: 100, requestsPerAddress: 100 })
    const limit = { rate: { per_second: 1, burst: 1 }, elapsed: () => 0 }
    for (let holder = 0; holder < holders; holder++) {
      const client = new ClientAddress(String(holder), false, limit)
      do {
        client.requests++
        shares.inProgress++
      } while (shares.check(client.requests, 0, client) === undefined)
      client.requests--
      shares.inProgress--
    }
    const newcomer = new ClientAddress('new', false, limit)
    newcomer.requests++
    shares.inProgress++
    t.equal(shares.check(1, 0, newcomer), undefined, `beside ${holders}`)
  }
  t.end()
})

t.test('Bodies that a runtime does not read use a part of the budget, and those of others pass', async (t) => {
  const count = effort({ small: 12, full: 40 })
  const setting = await startSetting(t, { limits: { bodyBytes: megabyte } })
  await setting.add('victim')
  await setting.add('other')
  const body = Buffer.alloc(16 * megabyte)
  const stalled = { name: 'victim', path: '/stall', from: attacker, method: 'POST', body }
  for (let n = 0; n < count; n++) open(t, setting, stalled)
  await until(() => setting.upstream.stalled.length === count, 'the stalled bodies')
  for (const from of [neighbour, attacker]) {
    const response = await send(setting.gateway.port, {
      path: '/t/other/sink',
      method: 'POST',
      body: body.subarray(0, 4 * megabyte),
    })
    t.equal(response.status, 200, from)
  }
  t.equal(setting.upstream.received, 8 * megabyte)
  const ends = setting.upstream.stalled.map((request) => once(request.resume(), 'end'))
  t.equal((await Promise.all(ends)).length, count, 'all of them pass when the runtime reads')
})

t.test('A connection with too many requests in progress is closed, and holds nothing of others', async (t) => {
  const setting = await startSetting(t, { limits: { requests: 100, requestsPerConnection: 8 } })
  await setting.add('acme')
  await setting.add('other')
  const text = 'GET /t/acme/hang HTTP/1.1\r\nHost: x\r\n\r\n'
  const pipeline = (count: number) => {
    const socket = connect({ host: '127.0.0.1', port: setting.gateway.port, localAddress: attacker })
    t.teardown(() => socket.destroy())
    socket.on('error', () => undefined)
    socket.write(text.repeat(count))
    return socket
  }
  pipeline(8)
  await until(() => setting.upstream.open === 8, 'as many requests as a connection may have')
  const closed = Array.from({ length: 5 }, () => pipeline(1_000))
  await until(() => closed.every((socket) => socket.closed), 'the end of the connections')
  await until(() => setting.upstream.open === 8, 'those of the closed connections have ended')
  t.match(await responseTo(open(t, setting, { name: 'other', path: '/bytes/3', from: neighbour })), { status: 200 })
  const metrics = await send(setting.gateway.internalPort, {
    path: '/metrics',
    headers: { 'x-tenantry-internal': token },
  })
  t.match(metrics.body, 'tenantry_gateway_bound_rejections_total{bound="requests_per_connection"} 5\n')
})

t.test('A holder of bodies may buffer as much as is free', (t) => {
  const budget = new BodyBudget(900)
  const first = budget.open('t_1', { bodyBytes: 0 })
  const second = budget.open('t_2', { bodyBytes: 0 })
  first.hold(440)
  t.ok(first.hasRoom)
  first.hold(450)
  t.notOk(first.hasRoom, 'half of it')
  t.ok(second.hasRoom)
  second.hold(225)
  t.notOk(second.hasRoom, 'half of the remainder')
  first.close()
  t.ok(second.hasRoom)
  second.close()
  second.close()
  t.same([budget.held, budget.free], [0, 900])
  t.end()
})

t.test('Requests that wait for their turn use nothing of the shares', (t) => {
  const limit = { rate: { per_second: 1, burst: 1 }, elapsed: () => 0 }
  const shares = new RequestShares({ requests: 400, requestsPerTenant: 100, requestsPerAddress: 100 })
  const client = new ClientAddress('new', false, limit)
  client.requests = 1
  shares.inProgress = 5_000
  t.match(shares.check(1, 0, client), { code: 'TENANT_BUSY' })
  t.equal(shares.check(1, 4_900, client), undefined)
  t.match(shares.check(101, 4_900, client), { code: 'TENANT_BUSY' }, 'those of the tenant that have begun')
  t.end()
})

t.test('A body that consists of the framing of tiny chunks gets 400, and others pass', async (t) => {
  const setting = await startSetting(t)
  await setting.add('acme')
  const post = async (chunk: string, count: number) => {
    const socket = connect({ host: '127.0.0.1', port: setting.gateway.port })
    t.teardown(() => socket.destroy())
    let got = ''
    socket.on('error', () => undefined).on('data', (data) => (got += data.toString()))
    socket.write('POST /t/acme/sink HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n')
    socket.write(chunk.repeat(count))
    socket.write('0\r\n\r\n')
    if (!socket.closed) await once(socket, 'close')
    return { status: got.slice(9, 12), code: /"code":"([^"]+)"/.exec(got)?.[1] }
  }
  const rejected = { status: '400', code: 'CHUNKS_TOO_SMALL' }
  t.same(await post(`1;${'x'.repeat(1_000)}\r\n \r\n`, 1_000), rejected, 'long extensions')
  t.same(await post('1\r\n \r\n', 200_000), rejected, 'chunks of one byte')
  const passed = { status: '200', code: undefined }
  t.same(await post('1\r\n \r\n', 10_000), passed, 'a short body')
  t.same(await post(`14\r\n${' '.repeat(20)}\r\n`, 50_000), passed, 'chunks of 20 bytes')
  t.same(await post(`1000\r\n${' '.repeat(4_096)}\r\n`, 500), passed, 'chunks of 4 KB')
})

t.test('A body that stays behind the minimum rate gets 408', async (t) => {
  let now = 0
  const setting = await startSetting(t, { elapsed: () => now })
  await setting.add('acme')
  for (const [bytes, expected] of [
    [100, { status: 408, code: 'BODY_TOO_SLOW', retryAfter: undefined }],
    [1_000, { status: 200, code: undefined, retryAfter: undefined }],
  ] as const) {
    const total = bytes * 40
    const slow = httpRequest({
      agent: false,
      host: '127.0.0.1',
      port: setting.gateway.port,
      path: '/t/acme/sink',
      method: 'POST',
      headers: { 'content-length': total },
    })
    slow.on('error', () => undefined)
    t.teardown(() => slow.destroy())
    const before = setting.upstream.received
    const state = { isOver: false }
    const response = responseTo(slow).finally(() => (state.isOver = true))
    for (let n = 1; n <= 40 && !state.isOver; n++) {
      slow.write(Buffer.alloc(bytes))
      await until(() => state.isOver || setting.upstream.received === before + n * bytes, 'the chunk')
      now += 1_000
    }
    t.same(await response, expected, `${bytes} bytes per second`)
  }
})
