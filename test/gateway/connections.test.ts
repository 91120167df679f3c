// Client addresses that hold many connections at the public server cost no other address an error.
import { once } from 'node:events'
import { Agent, request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { addressKey } from '#gateway/clients/address-key.ts'
import { parseIpv4Ranges } from '#gateway/tenants/ipv4-range.ts'
import { effort } from '#test/support/effort.ts'
import { until } from '#test/support/until.ts'
import { countOpen, openMany, statusFor } from './support/flood.ts'
import { startSetting } from './support/gateway.ts'

const attacker = '127.0.0.71'
const neighbour = '127.0.0.72'
/** No grace time, so that no test waits for it. */
const limits = {
  connections: 40,
  connectionsPerAddress: 16,
  connectionShare: 5,
  heads: 20,
  headsPerAddress: 8,
  headGrace: 0,
}

/** Opens connections that serve one request each and then stay open. */
async function openIdle(t: Test, port: number, count: number, localAddress: string): Promise<Socket[]> {
  const sockets: Socket[] = []
  for (let n = 0; n < count; n++) {
    const socket = connect({ host: '127.0.0.1', port, localAddress })
    t.teardown(() => socket.destroy())
    socket.on('error', () => undefined)
    sockets.push(socket)
    socket.write('GET /t/acme/bytes/3 HTTP/1.1\r\nHost: x\r\n\r\n')
    let got = ''
    for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
      got += String(chunk)
      if (got.includes('\r\n\r\n') && got.length >= got.indexOf('\r\n\r\n') + 7) break
    }
    socket.resume()
  }
  return sockets
}

/** Sends requests whose responses never come, at a time no more than an address may have connections without a head. */
async function openBusy(t: Test, port: number, count: number, localAddress: string, open: () => number) {
  const before = open()
  const requests: ClientRequest[] = []
  t.teardown(() => requests.forEach((request) => request.destroy()))
  while (requests.length < count) {
    for (let n = Math.min(limits.headsPerAddress, count - requests.length); n > 0; n--)
      requests.push(
        httpRequest({ agent: false, host: '127.0.0.1', port, path: '/t/acme/hang', localAddress })
          .on('error', () => undefined)
          .end(),
      )
    await until(() => open() === before + requests.length, `${requests.length} requests in progress`)
  }
  return requests
}

t.test('An address has its maximum of connections, and the newest replaces the one idle for longest', async (t) => {
  const { gateway, add } = await startSetting(t, { limits })
  await add('acme')
  const idle = await openIdle(t, gateway.port, limits.connectionsPerAddress, attacker)
  t.equal(await statusFor(gateway.port, '/t/acme/bytes/3', attacker), 200)
  t.same(
    idle.map(({ closed }) => closed),
    idle.map((_, nth) => nth === 0),
  )
})

t.test(
  'A connection beyond the maximum of its address gets 429 when requests are in progress on all others',
  async (t) => {
    const { gateway, add, upstream, errors } = await startSetting(t, { limits })
    await add('acme')
    const busy = await openBusy(t, gateway.port, limits.connectionsPerAddress, attacker, () => upstream.open)
    const request = httpRequest({
      agent: false,
      host: '127.0.0.1',
      port: gateway.port,
      path: '/',
      localAddress: attacker,
    })
    const [response] = (await once(request.end(), 'response')) as [IncomingMessage]
    let body = ''
    for await (const chunk of response) body += String(chunk)
    t.match(response, { statusCode: 429, headers: { 'retry-after': '1', connection: 'close' } })
    t.match(JSON.parse(body), {
      code: 'TOO_MANY_CONNECTIONS',
      message: "The client's address has 16 connections open, which is the maximum.",
    })
    t.same(errors, [{ address: attacker }], 'the log names the address')
    t.equal(await statusFor(gateway.port, '/t/acme/bytes/3', neighbour), 200)
    busy[0]?.destroy()
    await until(async () => (await statusFor(gateway.port, '/t/acme/bytes/3', attacker)) === 200, 'a free connection')
  },
)

t.test('Idle connections from one address, as many as the table holds, cost others no error', async (t) => {
  const connections = effort({ small: 250, full: 5_000 })
  const { gateway, add } = await startSetting(t, {
    limits: {
      ...limits,
      connections,
      connectionsPerAddress: connections,
      heads: connections,
      headsPerAddress: connections,
    },
  })
  await add('acme')
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const probe = async () => {
    const request = httpRequest({
      agent,
      host: '127.0.0.1',
      port: gateway.port,
      path: '/t/acme/bytes/3',
      localAddress: neighbour,
    })
    const [response] = (await once(request.end(), 'response')) as [IncomingMessage]
    await response.resume().toArray()
    return response.statusCode
  }
  t.equal(await probe(), 200)
  const idle = await openMany(t, gateway.port, connections, attacker)
  t.equal(await probe(), 200, 'on the connection that the neighbour had')
  const others: Socket[] = []
  for (let nth = 1; nth <= 20; nth++) others.push(...(await openIdle(t, gateway.port, 1, `127.0.1.${nth}`)))
  t.equal(await probe(), 200)
  await countOpen(idle, connections - 21)
  t.equal(others.filter(({ closed }) => closed).length, 0, 'only the address that holds most loses connections')
})

t.test('A full table of requests in progress leaves room for a client that holds less than its share', async (t) => {
  const setting = await startSetting(t, { limits })
  await setting.add('acme')
  const { port } = setting.gateway
  const open = () => setting.upstream.open
  for (const [from, count] of [
    ['127.0.1.1', 16],
    ['127.0.1.2', 16],
    ['127.0.1.3', 8],
  ] as const)
    await openBusy(t, port, count, from, open)
  t.equal(await statusFor(port, '/t/acme/bytes/3', neighbour), 200)
  await until(() => open() === limits.connections - 1, 'the end of one request of a greedy address')
})

t.test('When no address holds more than its share, a full table rejects a new client with 503', async (t) => {
  const setting = await startSetting(t, { limits: { ...limits, connections: 10 } })
  await setting.add('acme')
  for (const from of ['127.0.1.1', '127.0.1.2'])
    await openBusy(t, setting.gateway.port, limits.connectionShare, from, () => setting.upstream.open)
  t.equal(await statusFor(setting.gateway.port, '/t/acme/bytes/3', neighbour), 503)
  t.equal(setting.upstream.open, 10)
})

t.test('Connections without a whole head have a maximum for an address, and in all', async (t) => {
  const { gateway, add } = await startSetting(t, { limits })
  await add('acme')
  // Connections that are opened together are accepted in any order.
  const first: Socket[] = []
  for (let nth = 0; nth < 12; nth++) first.push(...(await openMany(t, gateway.port, 1, attacker)))
  t.equal(await countOpen(first, limits.headsPerAddress), limits.headsPerAddress)
  t.same(
    first.map(({ closed }) => closed),
    first.map((_, nth) => nth < 4),
    'the oldest are closed',
  )
  const others: Socket[] = []
  for (let nth = 1; nth <= 14; nth++) others.push(...(await openMany(t, gateway.port, 1, `127.0.1.${nth}`)))
  await countOpen(first, 6)
  t.equal(others.filter(({ closed }) => closed).length, 0, 'addresses with one each keep it')
  t.equal(await statusFor(gateway.port, '/t/acme/bytes/3', neighbour), 200)
})

t.test('New connections have time to send their head', async (t) => {
  let now = 0
  const { gateway, add } = await startSetting(t, { limits: { ...limits, headGrace: 1_000 }, elapsed: () => now })
  await add('acme')
  const sockets = await openMany(t, gateway.port, limits.connectionsPerAddress - 1, attacker)
  t.equal(await statusFor(gateway.port, '/t/acme/bytes/3', attacker), 200)
  t.equal(sockets.filter(({ closed }) => closed).length, 0)
  now = 1_000
  await openMany(t, gateway.port, 1, attacker)
  await countOpen(sockets, limits.connectionsPerAddress - 2)
})

t.test('In a full table, new connections of addresses with several make room for a client with none', async (t) => {
  const { gateway, add } = await startSetting(t, {
    limits: { ...limits, connections: 12, heads: 12, headGrace: 60_000 },
    elapsed: () => 0,
  })
  await add('acme')
  const idle: Socket[] = []
  for (const address of [81, 82, 83, 84]) idle.push(...(await openMany(t, gateway.port, 3, `127.0.0.${address}`)))
  t.equal(await statusFor(gateway.port, '/t/acme/bytes/3', neighbour), 200)
  t.equal(idle.filter(({ closed }) => closed).length, 1)
})

t.test("Connections of the operator's proxies have no maximum for their address", async (t) => {
  const trustedProxies = parseIpv4Ranges(attacker) ?? []
  const { gateway, add } = await startSetting(t, { limits, trustedProxies })
  await add('acme')
  const sockets = await openMany(t, gateway.port, limits.connectionsPerAddress + 4, attacker)
  t.equal(await statusFor(gateway.port, '/t/acme/bytes/3', attacker), 200)
  t.equal(sockets.filter(({ closed }) => closed).length, 0)
})

t.test('An IPv6 client is the /64 network of its address', (t) => {
  for (const [address, key] of [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::9', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:0002::', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ] as const)
    t.equal(addressKey(address), key)
  t.end()
})
