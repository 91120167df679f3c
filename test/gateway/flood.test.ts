// A tenant's container opens connections without end, and every listener continues to serve others.
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import t from 'tap'
import type { GatewayOptions } from '#gateway/gateway.ts'
import { defaultLimits } from '#gateway/limits.ts'
import { parseIpv4Range } from '#gateway/tenants/ipv4-range.ts'
import { until } from '#test/support/until.ts'
import { countOpen, openMany, statusFor } from './support/flood.ts'
import { send, startSetting, type Setting } from './support/gateway.ts'
import { errorFields, startup } from './support/sql-wire.ts'

const bounds = { tenantConnections: 8, tenantInternalConnections: 6, tenantSqlConnections: 4 }
const flood = 40
const flooder = '127.0.0.66'
const neighbour = '127.0.0.67'

function boundRange(cidr: string, except?: string): Pick<GatewayOptions, 'tenantAddresses' | 'postgres' | 'limits'> {
  const range = parseIpv4Range(cidr)
  const own = parseIpv4Range(except ?? '')
  if (range === undefined) throw new Error(cidr)
  return {
    tenantAddresses: { range, ...(own === undefined ? {} : { except: own }) },
    postgres: { port: 0 },
    limits: bounds,
  }
}

const tenants = boundRange('127.0.0.64/28')

function portsOf({ gateway }: Setting): Record<'public' | 'internal' | 'postgres', number> {
  return { public: gateway.port, internal: gateway.internalPort, postgres: gateway.postgresPort ?? 0 }
}

/** Returns the SQLSTATE that the Postgres proxy sends to an unknown user, or undefined. */
async function sqlResponse(port: number, localAddress: string): Promise<string | undefined> {
  const client = connect({ host: '127.0.0.1', port, localAddress })
  const chunks: Buffer[] = []
  client.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => undefined)
  client.write(startup(['user', 'unknown']))
  await new Promise((resolve) => client.on('close', resolve))
  return chunks.length === 0 ? undefined : errorFields(Buffer.concat(chunks))['C']
}

function opensAndCloses(url: string): Promise<boolean> {
  const client = new WebSocket(url)
  return new Promise((resolve) => {
    client.addEventListener('error', () => resolve(false))
    client.addEventListener('close', ({ wasClean }) => resolve(wasClean))
    client.addEventListener('open', () => client.close())
  })
}

t.test('Others are served during a flood from one address, and the limit is free again afterwards', async (t) => {
  const setting = await startSetting(t, tenants)
  await setting.add('acme')
  const ports = portsOf(setting)
  const served = {
    public: (from: string) => statusFor(ports.public, '/t/acme/bytes/3', from),
    internal: (from: string) => statusFor(ports.internal, '/internal/v1/live', from),
    postgres: (from: string) => sqlResponse(ports.postgres, from),
  }
  const good = { public: 200, internal: 200, postgres: '28000' }
  const max = {
    public: bounds.tenantConnections,
    internal: bounds.tenantInternalConnections,
    postgres: bounds.tenantSqlConnections,
  }
  for (const listener of ['public', 'internal', 'postgres'] as const) {
    const sockets = await openMany(t, ports[listener], flood, flooder)
    t.equal(await countOpen(sockets, max[listener]), max[listener], `${listener}: as many as one address may open`)
    t.not(await served[listener](flooder), good[listener], `${listener}: the flooding address is rejected`)
    t.equal(await served[listener](neighbour), good[listener], `${listener}: another tenant is served`)
    t.equal(
      await served[listener]('127.0.0.1'),
      good[listener],
      `${listener}: and so is a client outside of all tenants`,
    )
    sockets.forEach((socket) => socket.destroy())
    await until(async () => (await served[listener](flooder)) === good[listener], `${listener}: a free connection`)
  }
})

t.test('Each listener has its own limit', async (t) => {
  const setting = await startSetting(t, tenants)
  const ports = portsOf(setting)
  await countOpen(await openMany(t, ports.public, flood, flooder), bounds.tenantConnections)
  await countOpen(await openMany(t, ports.postgres, flood, flooder), bounds.tenantSqlConnections)
  t.equal(await statusFor(ports.internal, '/internal/v1/live', flooder), 200)
})

t.test("Addresses outside the range, and the region's own within it, have no limit", async (t) => {
  for (const options of [
    tenants,
    boundRange('127.0.0.0/8', '127.0.0.80/28'),
    { ...tenants, tenantAddresses: undefined },
  ]) {
    const { tenantAddresses, ...others } = options
    const setting = await startSetting(t, tenantAddresses === undefined ? others : { ...others, tenantAddresses })
    const from = '127.0.0.81'
    for (const port of Object.values(portsOf(setting))) {
      const sockets = await openMany(t, port, flood, from)
      // The response comes after the connections, so the gateway has accepted them all.
      await (port === setting.gateway.postgresPort ? sqlResponse(port, from) : statusFor(port, '/health', from))
      t.equal(sockets.filter(({ closed }) => !closed).length, flood)
    }
  }
})

t.test('An IPv4 tenant has the same limit at an IPv6 listener', async (t) => {
  const setting = await startSetting(t, { ...tenants, host: '::', internalHost: '::' })
  for (const [listener, max] of [
    ['public', bounds.tenantConnections],
    ['internal', bounds.tenantInternalConnections],
    ['postgres', bounds.tenantSqlConnections],
  ] as const) {
    t.equal(await countOpen(await openMany(t, portsOf(setting)[listener], flood, flooder), max), max, listener)
  }
})

t.test('The log names each flooding address at most once a minute', async (t) => {
  let now = 0
  const setting = await startSetting(t, { ...tenants, elapsed: () => now })
  const { public: port, internal } = portsOf(setting)
  const rejectOne = async (at: number, from: string) => {
    const before = reported().length
    t.not(await statusFor(at, '/health', from), 404)
    return reported().length - before
  }
  const reported = () =>
    setting.errors.filter((fields) => typeof fields === 'object' && fields !== null && 'address' in fields)
  for (const from of [flooder, neighbour])
    await countOpen(await openMany(t, port, flood, from), bounds.tenantConnections)
  t.same(reported(), [
    { listener: 'public', address: flooder },
    { listener: 'public', address: neighbour },
  ])
  await countOpen(await openMany(t, internal, flood, flooder), bounds.tenantInternalConnections)
  now = 59_999
  t.equal(await rejectOne(port, flooder), 0)
  now = 60_000
  t.equal(await rejectOne(port, flooder), 1)
  t.equal(await rejectOne(port, flooder), 0)
  t.equal(await rejectOne(port, neighbour), 1)
})

t.test('Connections to runtimes have a common limit, and further requests get 503 with Retry-After', async (t) => {
  const setting = await startSetting(t, { limits: { runtimeSockets: 2, reachTimeout: 200 } })
  await setting.add('acme')
  const { port } = setting.gateway
  const held = [0, 1].map(() =>
    httpRequest({ agent: false, host: '127.0.0.1', port, path: '/t/acme/hang' })
      .end()
      .on('error', () => undefined),
  )
  t.teardown(() => held.forEach((request) => request.destroy()))
  await until(() => setting.upstream.open === 2)
  const rejected = await send(port, { path: '/t/acme/bytes/3' })
  t.match(JSON.parse(rejected.body), { statusCode: '503', code: 'GATEWAY_BUSY' })
  t.equal(rejected.headers['retry-after'], '1')
  const upgrade = await send(port, { path: '/t/acme/ws', headers: { connection: 'Upgrade', upgrade: 'websocket' } })
  t.match(JSON.parse(upgrade.body), { statusCode: '503', code: 'GATEWAY_BUSY' })
  await setting.add('away', { runtimes: ['http://127.0.0.1:1'] })
  held[0]?.destroy()
  await until(async () => (await send(port, { path: '/t/acme/bytes/3' })).status === 200, 'a free connection')
  held[1]?.destroy()
  await until(() => setting.upstream.open === 0)
  for (let n = 0; n < 4; n++)
    await until(() => opensAndCloses(`ws://127.0.0.1:${port}/t/acme/ws`), 'a free connection for an upgrade')
  // A connection that could not be opened does not count.
  for (let n = 0; n < 4; n++) t.match((await send(port, { path: '/t/away/head' })).body, /RUNTIME_UNREACHABLE/)
  t.match(
    (await send(port, { path: '/t/away/ws', headers: { connection: 'Upgrade', upgrade: 'websocket' } })).body,
    /RUNTIME_UNREACHABLE/,
  )
  t.equal((await send(port, { path: '/t/acme/bytes/3' })).status, 200)
})

t.test('All connections that may be open at once fit the file descriptors of the container', (t) => {
  const { connections, internalConnections, runtimeSockets, sqlSessions, sqlUnauthenticated } = defaultLimits
  const { egressConnections, egressStorageConnections, egressHeads } = defaultLimits
  const egress = 2 * (egressConnections + egressStorageConnections) + egressHeads
  const held = connections + runtimeSockets + 2 * internalConnections + 2 * (sqlSessions + sqlUnauthenticated) + egress
  t.ok(held + 512 < 16_384, `${held} and some for files and calls`)
  t.end()
})
