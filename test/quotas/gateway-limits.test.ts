// What a gateway itself rejects: requests beyond a rate and too many long-lived connections, with their responses.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Route, RouteLimits } from '@tenantry/contract'
import t from 'tap'
import { send, newTenantId, sendRaw, startSetting, type ReceivedResponse } from '#test/gateway/support/gateway.ts'
import { until } from '#test/support/until.ts'

const unlimited: RouteLimits = { requests_per_month: null, connections: null, rate: null }
const headersOf = ({ headers }: ReceivedResponse) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => /^(?:ratelimit|retry)/.test(name)))

t.test('Beyond its rate a tenant gets 429 with all that a client needs to retry, and others are served', async (t) => {
  let elapsed = 0
  const setting = await startSetting(t, { elapsed: () => elapsed })
  const { name, tenant_id: id } = await setting.add('fast', {
    limits: { ...unlimited, rate: { per_second: 2, burst: 3 } },
  })
  await setting.add('other', { limits: { ...unlimited, rate: { per_second: 2, burst: 3 } } })
  const get = (tenant = name) => send(setting.gateway.port, { path: `/t/${tenant}/status/200` })
  const first = await get()
  t.same([first.status, headersOf(first)], [200, { 'ratelimit-policy': '"rate";q=3;w=2', ratelimit: '"rate";r=2;t=1' }])
  t.same([(await get()).status, (await get()).status], [200, 200])
  const rejected = await get()
  t.match(
    { status: rejected.status, ...(JSON.parse(rejected.body) as object) },
    {
      status: 429,
      statusCode: '429',
      error: 'too_many_requests',
      code: 'RATE_LIMITED',
      limit: 3,
      used: 3,
      resets_at: /^20/,
      message: 'The tenant allows 2 requests per second, in bursts of up to 3.',
    },
  )
  t.same(headersOf(rejected), {
    'retry-after': '1',
    'ratelimit-limit': '3',
    'ratelimit-remaining': '0',
    'ratelimit-reset': '1',
  })
  t.match(rejected.headers['access-control-expose-headers'], /RateLimit-Reset/)
  t.same((await get('other')).status, 200)
  elapsed += 500
  t.same([(await get()).status, (await get()).status], [200, 429])
  t.same(setting.upstream.seen.length, 5)
  await until(
    () => setting.control.total(({ tenant_id, meter }) => tenant_id === id && meter === 'refused_requests') === 2,
  )
  t.same(
    setting.control.total(({ tenant_id, meter }) => tenant_id === id && meter === 'requests'),
    4,
    'rejected requests are counted separately',
  )
})

t.test('A change of the plan takes effect at once with its route', async (t) => {
  const setting = await startSetting(t, { elapsed: () => 0 })
  const route = await setting.add('changing', { limits: { ...unlimited, rate: { per_second: 1, burst: 1 } } })
  const get = async () => (await send(setting.gateway.port, { path: '/t/changing/status/200' })).status
  t.same([await get(), await get()], [200, 429])
  await setting.put({ ...route, generation: 2, limits: { ...unlimited, rate: { per_second: 1, burst: 2 } } })
  t.same([await get(), await get(), await get()], [200, 200, 429])
  await setting.put({ ...route, generation: 3, limits: unlimited })
  t.same([await get(), await get()], [200, 200])
})

t.test('A rejected request keeps its connection, and a rejection by phase does not count for the rate', async (t) => {
  const setting = await startSetting(t, { elapsed: () => 0 })
  const route = await setting.add('kept', { limits: { ...unlimited, rate: { per_second: 1, burst: 1 } } })
  await setting.put({ ...route, generation: 2, phase: 'suspended' })
  t.same((await send(setting.gateway.port, { path: '/t/kept/status/200' })).status, 403)
  await setting.put({ ...route, generation: 3 })
  const head = 'GET /t/kept/status/200 HTTP/1.1\r\nHost: x\r\n'
  const text = await sendRaw(setting.gateway.port, `${head}\r\n${head}\r\n${head}Connection: close\r\n\r\n`)
  t.same(text.match(/HTTP\/1.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 429', 'HTTP/1.1 429'])
})

t.test('The plan limits long-lived connections, and one that ends frees its slot', async (t) => {
  const setting = await startSetting(t)
  setting.control.connections = 3
  const { name, tenant_id: id } = await setting.add('connecting', { limits: { ...unlimited, connections: 3 } })
  const upgrade = `GET /t/${name}/raw HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n`
  const stream = `GET /t/${name}/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n`
  const open = async (text: string) => {
    const socket = connect(setting.gateway.port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.write(text)
    const [chunk] = (await once(socket, 'data')) as [Buffer]
    return { socket, status: /^HTTP\/1.1 (\d+)/.exec(chunk.toString())?.[1], text: chunk.toString() }
  }
  const sockets: Socket[] = []
  for (const [text, status] of [
    [upgrade, '101'],
    [stream, '200'],
    [upgrade, '101'],
  ] as const) {
    const opened = await open(text)
    t.same(opened.status, status)
    sockets.push(opened.socket)
  }
  for (const text of [upgrade, stream]) {
    const rejected = await open(text)
    t.same(rejected.status, '429')
    t.match(rejected.text, /"code":"QUOTA_CONNECTIONS","limit":3,"used":3,"resets_at":null/)
    t.match(rejected.text, /^retry-after: 5$/im)
    rejected.socket.destroy()
  }
  t.same((await send(setting.gateway.port, { path: `/t/${name}/status/200` })).status, 200, 'other requests are served')
  const [first] = sockets
  first?.destroy()
  await until(async () => {
    const again = await open(upgrade)
    t.teardown(() => again.socket.destroy())
    return again.status === '101'
  })
  t.same((await open(stream)).status, '429', 'only one slot was free')
  await until(
    () => setting.control.total(({ tenant_id, meter }) => tenant_id === id && meter === 'connections_peak') === 3,
  )
  for (const socket of sockets) socket.destroy()
})

t.test('A control plane that is away for a moment delays a request, and rejects none', async (t) => {
  const setting = await startSetting(t, { leaseWait: 60_000 })
  setting.control.monthly = 1_000
  setting.control.leases = false
  const { name } = await setting.add('waiting', { limits: { ...unlimited, requests_per_month: 1_000 } })
  let response: number | undefined
  const requested = send(setting.gateway.port, { path: `/t/${name}/status/200` }).then(
    ({ status }) => (response = status),
  )
  // The gateway has tried, and failed.
  await until(() =>
    setting.errors.some(
      (fields) =>
        typeof fields === 'object' &&
        fields !== null &&
        'err' in fields &&
        /could not be leased/.test(String(fields.err)),
    ),
  )
  t.equal(response, undefined)
  setting.control.leases = true
  t.equal(await requested, 200)
})

t.test('A gateway with only an older copy of its routes knows no limits', async (t) => {
  const setting = await startSetting(t)
  const route: Route = {
    tenant_id: newTenantId(),
    name: 'older',
    generation: 1,
    phase: 'ready',
    runtimes: [setting.upstream.url],
    dedicated: false,
  }
  await setting.put(route)
  const response = await send(setting.gateway.port, { path: '/t/older/status/200' })
  t.same([response.status, headersOf(response)], [200, {}])
})

t.test(
  'A connection waits for an absent control plane and loses nothing, and one that leaves takes no slot',
  async (t) => {
    const setting = await startSetting(t, { leaseWait: 60_000 })
    setting.control.connections = 3
    setting.control.leases = false
    const { name, tenant_id: id } = await setting.add('held', { limits: { ...unlimited, connections: 3 } })
    const send = (text: string) => {
      const socket = connect(setting.gateway.port, '127.0.0.1')
      t.teardown(() => socket.destroy())
      const seen = { socket, text: '' }
      socket.on('error', () => undefined).on('data', (chunk: Buffer) => (seen.text += chunk.toString()))
      socket.write(text)
      return seen
    }
    const upgrade = `GET /t/${name}/raw HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n`
    const stream = `GET /t/${name}/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n`
    const [raw, events] = [send(upgrade), send(stream)]
    const leaving = [send(stream), send(stream)]
    await until(() => setting.upstream.seen.length === 4, 'all at the runtime')
    t.same([raw.text, events.text], ['', ''])
    for (const { socket } of leaving) socket.destroy()
    await until(() => setting.upstream.open === 1, 'the end of the streams that left, at the runtime')
    setting.control.leases = true
    await until(
      () => /^HTTP\/1.1 101[^]*hello $/.test(raw.text) && /^HTTP\/1.1 200[^]*data: first/.test(events.text),
      'both responses',
    )
    raw.socket.write('and back')
    await until(() => raw.text.endsWith('hello and back'), 'its echo')
    await until(
      () => setting.control.total(({ tenant_id, meter }) => tenant_id === id && meter === 'connections_peak') === 2,
      'the two that remained',
    )
    const third = send(upgrade)
    await until(() => /^HTTP\/1.1 101/.test(third.text), 'the third slot, which no connection that left has taken')
  },
)

t.test('A connection that waits for a slot in vain gets 429, and its call to the runtime ends', async (t) => {
  const setting = await startSetting(t)
  setting.control.connections = 0
  const { name } = await setting.add('vain', { limits: { ...unlimited, connections: 3 } })
  const upgrade = `GET /t/${name}/raw HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n`
  t.match(
    await sendRaw(setting.gateway.port, upgrade, { waitFor: /"code"/ }),
    /^HTTP\/1.1 429[^]*"code":"QUOTA_CONNECTIONS","limit":3/,
  )
  const stream = await send(setting.gateway.port, { path: `/t/${name}/events` })
  t.match([stream.status, stream.body], [429, /"QUOTA_CONNECTIONS"/])
  await until(() => setting.upstream.open === 0, 'no stream remains at the runtime')
})
