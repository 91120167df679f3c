// Clients whose addresses the operator has blocked get nothing, at any port, and others do not notice.
import { once } from 'node:events'
import { BlockList, connect, isIPv4, type Socket } from 'node:net'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { NetworkSet } from '#gateway/clients/network-set.ts'
import { parseIpv4Ranges } from '#gateway/tenants/ipv4-range.ts'
import { effort, seed } from '#test/support/effort.ts'
import { until } from '#test/support/until.ts'
import { send, startSetting, token, type Setting } from './support/gateway.ts'
import { activityOf, addTenant, proxyOf, withProxy } from './support/postgres-proxy.ts'
import { errorFields, startFakePostgres, startLogin, startup } from './support/sql-wire.ts'

const blocked = '127.0.0.101'
const neighbour = '127.0.0.102'
const proxy = '127.0.0.103'
let generation = 0

function block({ control }: Setting, address: string, expires_at: string | null = null): void {
  control.blocked.put({ address, generation: ++generation, expires_at })
}

/** Sends a request on its own connection. @returns the status with the body, or the error of the connection */
async function get(
  { gateway }: Setting,
  localAddress: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<string> {
  const request = httpRequest({ agent: false, host: '127.0.0.1', port: gateway.port, path, localAddress, headers })
  request.on('error', () => undefined)
  try {
    const [response] = (await once(request.end(), 'response')) as [IncomingMessage]
    let body = ''
    for await (const chunk of response) body += String(chunk)
    return `${response.statusCode ?? 0} ${body}`
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error)
  }
}

/** Begins a request whose response does not end. */
function openStream(t: Test, { gateway }: Setting, localAddress: string, headers: Record<string, string> = {}) {
  const path = '/t/acme/events'
  const request = httpRequest({ agent: false, host: '127.0.0.1', port: gateway.port, path, localAddress, headers })
  t.teardown(() => request.destroy())
  const state = { isOpen: false, request: request.end() }
  request.on('response', (response: IncomingMessage) => {
    state.isOpen = true
    response.on('error', () => undefined).on('close', () => (state.isOpen = false))
    response.resume()
  })
  request.on('error', () => undefined)
  return state
}

/** Opens a connection and sends nothing. */
async function openSocket(t: Test, port: number, localAddress: string): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, localAddress })
  socket.on('error', () => undefined)
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** Sends a startup packet of an unknown user. @returns the SQLSTATE of the response, or undefined without one */
async function tryLogin(setting: Setting, localAddress: string): Promise<string | undefined> {
  const socket = connect({ host: '127.0.0.1', port: proxyOf(setting), localAddress })
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => undefined)
  socket.write(startup(['user', 'nobody']))
  await new Promise((resolve) => socket.on('close', resolve))
  return chunks.length === 0 ? undefined : errorFields(Buffer.concat(chunks))['C']
}

async function readBound({ gateway }: Setting): Promise<(number | undefined)[]> {
  const { body } = await send(gateway.internalPort, { path: '/metrics', headers: { 'x-tenantry-internal': token } })
  return ['used', 'limit', 'rejections_total'].map((name) => {
    const found = new RegExp(`^tenantry_gateway_bound_${name}\\{bound="blocked_addresses"\\} (\\d+)$`, 'm').exec(body)
    return found === null ? undefined : Number(found[1])
  })
}

const untilBlocked = (setting: Setting, address = blocked) =>
  until(async () => (await get(setting, address, '/health')) === 'ECONNRESET', `${address} is blocked`)
const untilServed = (setting: Setting, address = blocked) =>
  until(async () => (await get(setting, address, '/health')).startsWith('200'), `${address} is served`)

t.test('A blocked address gets nothing at both ports, others are served, and no tenant is charged', async (t) => {
  const setting = await startSetting(t, withProxy)
  const route = await setting.add('acme')
  const requests = () =>
    setting.control.total((counter) => counter.tenant_id === route.tenant_id && counter.meter.includes('requests'))
  t.equal(await get(setting, blocked, '/t/acme/bytes/3'), '200 xxx')
  await until(() => requests() === 1)

  block(setting, '127.0.0.100/31')
  block(setting, blocked)
  await untilBlocked(setting)
  const [used, limit, before = 0] = await readBound(setting)
  t.same([used, limit], [2, 10_000])
  for (let n = 0; n < 20; n++) t.equal(await get(setting, blocked, '/t/acme/bytes/3'), 'ECONNRESET')
  for (let n = 0; n < 5; n++) t.equal(await tryLogin(setting, blocked), undefined)
  t.equal((await readBound(setting))[2], before + 25, 'each is counted')
  t.equal(await get(setting, neighbour, '/t/acme/bytes/3'), '200 xxx')
  t.equal(await tryLogin(setting, neighbour), '28000')
  await until(() => requests() === 2)
  t.equal(setting.upstream.seen.length, 2, 'the runtime received nothing of it')

  setting.control.blocked.remove('127.0.0.100/31')
  setting.control.blocked.remove('192.0.2.1')
  await until(async () => (await readBound(setting))[0] === 1)
  t.equal(await get(setting, blocked, '/health'), 'ECONNRESET', 'another entry contains it')
  setting.control.blocked.remove(blocked)
  await untilServed(setting)
  t.equal(await get(setting, blocked, '/t/acme/bytes/3'), '200 xxx')
  t.equal(await tryLogin(setting, blocked), '28000')
})

t.test('What a newly blocked address has open is closed, and nothing else', async (t) => {
  const setting = await startSetting(t, withProxy)
  await setting.add('acme')
  const server = await startFakePostgres(t)
  const { tenant_id: id } = await addTenant(setting, 'database', server.address)
  const open = async (address: string) => {
    const idle = await openSocket(t, setting.gateway.port, address)
    const head = await openSocket(t, setting.gateway.port, address)
    head.write('GET / HTTP/1.1\r\nhost:')
    const upgraded = await openSocket(t, setting.gateway.port, address)
    upgraded.write('GET /t/acme/raw HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: raw\r\n\r\n')
    await once(upgraded, 'data')
    const login = await startLogin(t, proxyOf(setting), server, `${id}_admin`, address)
    const sockets = [idle, head, upgraded, login]
    // A socket reads only then that the other side has closed.
    for (const socket of sockets) socket.resume()
    return { sockets, stream: openStream(t, setting, address) }
  }
  const [own, others] = [await open(blocked), await open(neighbour)]
  await until(() => own.stream.isOpen && others.stream.isOpen)
  await until(async () => (await activityOf(setting, id))?.open === 2)
  block(setting, blocked)
  await until(() => own.sockets.every(({ closed }) => closed) && !own.stream.isOpen, 'the end of all connections')
  t.same(
    others.sockets.map(({ closed }) => closed),
    [false, false, false, false],
  )
  t.ok(others.stream.isOpen)
  t.ok(((await readBound(setting))[2] ?? 0) >= 5)
})

t.test('Behind a trusted proxy, requests of a blocked client are rejected, and its streams end', async (t) => {
  const setting = await startSetting(t, { trustedProxies: parseIpv4Ranges(proxy) ?? [] })
  const route = await setting.add('acme')
  const of = (client: string) => ({ 'x-forwarded-for': client })
  const stream = openStream(t, setting, proxy, of('203.0.113.7'))
  const othersStream = openStream(t, setting, proxy, of('203.0.114.7'))
  await until(() => stream.isOpen && othersStream.isOpen)
  const seen = setting.upstream.seen.length

  block(setting, '203.0.113.0/24')
  block(setting, '2001:db8::/32')
  block(setting, '127.0.0.0/8')
  await until(() => !stream.isOpen, 'the end of its stream')
  t.ok(othersStream.isOpen)
  const rejected = await get(setting, proxy, '/t/acme/bytes/3', of('203.0.113.7'))
  t.match(rejected, /^403 /)
  t.same(JSON.parse(rejected.slice(4)), {
    statusCode: '403',
    error: 'forbidden',
    message: "The operator has blocked the client's address.",
    code: 'ADDRESS_BLOCKED',
  })
  for (const client of ['::ffff:203.0.113.9', '2001:db8:1::1', '10.0.0.1, 203.0.113.7'])
    t.match(await get(setting, proxy, '/health', of(client)), /ADDRESS_BLOCKED/, client)
  t.equal(setting.upstream.seen.length, seen, 'no runtime receives them')
  t.equal(
    setting.control.total(({ tenant_id, meter }) => tenant_id === route.tenant_id && meter === 'refused_requests'),
    0,
  )

  t.equal(await get(setting, proxy, '/t/acme/bytes/3', of('203.0.114.7')), '200 xxx', 'another client of the proxy')
  t.match(await get(setting, proxy, '/health'), /^200/, 'the proxy itself is never blocked')
  t.equal(await get(setting, neighbour, '/health', of('203.0.114.7')), 'ECONNRESET', 'only a trusted proxy is believed')

  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const ports = new Set<number | undefined>()
  for (const client of ['203.0.113.7', '203.0.114.7', '203.0.113.7', '203.0.114.7']) {
    const options = { agent, host: '127.0.0.1', port: setting.gateway.port, localAddress: proxy, headers: of(client) }
    const request = httpRequest({ ...options, method: 'POST', path: '/t/acme/echo' }).end('text')
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    ports.add(request.socket?.localPort)
    await response.resume().toArray()
    t.equal(response.statusCode, client === '203.0.113.7' ? 403 : 200)
  }
  t.equal(ports.size, 1, "the proxy's connection continues")
})

t.test('A gateway that starts without a control plane still blocks, and entries end at their time', async (t) => {
  let now = Date.parse('2026-11-23T12:00:00Z')
  const setting = await startSetting(t, { now: () => now })
  setting.control.now = () => new Date(now)
  block(setting, blocked)
  block(setting, neighbour, '2026-11-23T12:10:00.000Z')
  await untilBlocked(setting)
  await untilBlocked(setting, neighbour)
  await setting.control.stop()
  await setting.restart()
  t.equal(await get(setting, blocked, '/health'), 'ECONNRESET')
  t.equal(await get(setting, neighbour, '/health'), 'ECONNRESET')
  now += 599_999
  t.equal(await get(setting, neighbour, '/health'), 'ECONNRESET')
  now += 1
  t.match(await get(setting, neighbour, '/health'), /^200/, 'without a restart')
  t.equal((await readBound(setting))[0], 1)
  t.equal(await get(setting, blocked, '/health'), 'ECONNRESET')

  setting.control.blocked.remove(blocked)
  await setting.control.start()
  await untilServed(setting)
  await setting.restart()
  t.match(await get(setting, blocked, '/health'), /^200/, 'the copy on disk is current')
})

t.test('With a control plane that does not know blocked addresses, the stored ones stay blocked', async (t) => {
  const setting = await startSetting(t)
  block(setting, blocked)
  await untilBlocked(setting)
  setting.control.knowsBlocked = false
  await setting.control.stop()
  await setting.control.start()
  await setting.restart()
  await setting.add('acme')
  t.equal(await get(setting, blocked, '/health'), 'ECONNRESET')
  t.equal(await get(setting, neighbour, '/t/acme/bytes/3'), '200 xxx')
})

t.test('A set of networks contains an address exactly if one of its networks does', async (t) => {
  const address4 = fc
    .tuple(fc.constantFrom(10, 11), fc.nat(3), fc.nat(255), fc.nat(255))
    .map((octets) => octets.join('.'))
  const address6 = fc
    .tuple(fc.constantFrom('2001', '2002'), fc.constantFrom('db8', '0', 'ffff'), fc.nat(0xffff))
    .map(([first, second, last]) => `${first}:${second}::${last.toString(16)}`)
  const network4 = fc.tuple(address4, fc.integer({ min: 1, max: 32 }))
  const network6 = fc.tuple(address6, fc.integer({ min: 16, max: 128 }))
  const property = fc.property(
    fc.uniqueArray(fc.oneof(network4, network6), {
      maxLength: 30,
      selector: ([address, bits]) => `${address}/${bits}`,
    }),
    fc.array(fc.oneof(address4, address6), { minLength: 1, maxLength: 20 }),
    (networks, addresses) => {
      const set = new NetworkSet()
      const list = new BlockList()
      for (const [address, bits] of networks) {
        set.put(`${address}/${bits}`, 1)
        list.addSubnet(address, bits, isIPv4(address) ? 'ipv4' : 'ipv6')
      }
      const agrees = addresses.every(
        (address) =>
          set.has(address, 0) === list.check(address, isIPv4(address) ? 'ipv4' : 'ipv6') && !set.has(address, 1),
      )
      for (const [address, bits] of networks) set.remove(`${address}/${bits}`)
      return agrees && addresses.every((address) => !set.has(address, 0))
    },
  )
  fc.assert(property, { numRuns: effort({ small: 300, full: 20_000 }), seed })
  t.pass('for every set')
})
