// WebSocket and other upgrades through the gateway.
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { WebSocket } from 'ws'
import { until } from '#test/support/until.ts'
import { sendRaw, startSetting } from './support/gateway.ts'
import { megabyte } from './support/upstream.ts'

t.test('A WebSocket echoes through the gateway, by path and by host', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  const route = await add('acme')
  const ways = [
    () =>
      new WebSocket(`ws://127.0.0.1:${gateway.port}/t/acme/realtime/v1?vsn=1`, {
        headers: { 'x-tenantry-tenant': 'forged' },
      }),
    () => new WebSocket(`ws://127.0.0.1:${gateway.port}/realtime/v1?vsn=1`, { headers: { host: 'acme.localhost' } }),
  ]
  for (const [index, open] of ways.entries()) {
    const client = open()
    await once(client, 'open')
    client.send('hello')
    t.equal(String((await once(client, 'message'))[0]), 'hello')
    const big = Buffer.alloc(2 * megabyte, 'b')
    client.send(big)
    t.equal(((await once(client, 'message'))[0] as Buffer).compare(big), 0)
    client.close(1000)
    t.equal((await once(client, 'close'))[0], 1000, 'the closing handshake passes')
    t.equal(upstream.seen[index]?.url, '/realtime/v1?vsn=1')
    t.equal(upstream.seen[index]?.headers['x-tenantry-tenant'], route.tenant_id)
  }
})

t.test('Any other protocol passes unchanged, with bytes that either side sent early', async (t) => {
  const { gateway, add } = await startSetting(t)
  await add('acme')
  const got = await sendRaw(
    gateway.port,
    'GET /t/acme/raw HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\nearly bytes',
    { waitFor: /early bytes$/ },
  )
  t.match(got, /^HTTP\/1\.1 101 Switching Protocols\r\n/)
  t.match(got, /\r\nupgrade: raw\r\n/i)
  t.match(got, /\r\n\r\nhello early bytes$/)
})

t.test('A rejected upgrade is an ordinary response', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  await add('acme')
  await add('held', { phase: 'suspended', reason: 'unpaid' })
  await add('dead', { runtimes: ['http://127.0.0.1:1'] })
  const handshake = (path: string) =>
    `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
    'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n'
  const rejected = await sendRaw(gateway.port, handshake('/t/acme/denied'))
  t.match(rejected, /^HTTP\/1\.1 401 Unauthorized\r\n/)
  t.match(rejected, /x-why: key\r\n/i)
  t.match(rejected, /\r\n\r\nno$/)
  t.match(await sendRaw(gateway.port, handshake('/t/missing/x')), /^HTTP\/1\.1 404 [^]*TENANT_NOT_FOUND/)
  t.match(await sendRaw(gateway.port, handshake('/t/held/x')), /^HTTP\/1\.1 403 [^]*unpaid/)
  t.match(await sendRaw(gateway.port, handshake('/t/dead/x')), /^HTTP\/1\.1 503 [^]*RUNTIME_UNREACHABLE/)
  t.equal(upstream.seen.length, 1)
})

t.test('When one side disconnects, the gateway disconnects the other', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  await add('acme')
  const client = new WebSocket(`ws://127.0.0.1:${gateway.port}/t/acme/ws`)
  await once(client, 'open')
  const closed = once(client, 'close')
  await upstream.stop()
  t.equal((await closed)[0], 1006)
})

t.test('A client that leaves during the handshake ends the connection to the runtime', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  await add('acme')
  const socket = connect(gateway.port, '127.0.0.1')
  socket.write('GET /t/acme/hang HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n')
  await until(() => upstream.open === 1)
  socket.destroy()
  await until(() => upstream.aborted === 1)
  t.equal(upstream.open, 0)
})

t.test('A stop ends upgraded connections', async (t) => {
  const { gateway, add } = await startSetting(t)
  await add('acme')
  const client = new WebSocket(`ws://127.0.0.1:${gateway.port}/t/acme/ws`)
  await once(client, 'open')
  const closed = once(client, 'close')
  await gateway.stop()
  await closed
  t.equal(client.readyState, WebSocket.CLOSED)
})

t.test('A stop ends many connections in groups, so that their clients do not come back all at once', async (t) => {
  const { gateway, add } = await startSetting(t)
  await add('acme')
  const clients = Array.from({ length: 120 }, () => new WebSocket(`ws://127.0.0.1:${gateway.port}/t/acme/ws`))
  await Promise.all(clients.map((client) => once(client, 'open')))
  const closed = () => clients.filter(({ readyState }) => readyState === WebSocket.CLOSED).length
  const first = Promise.race(clients.map((client) => once(client, 'close')))
  const stopped = gateway.stop()
  await first
  const open = clients.filter(({ readyState }) => readyState === WebSocket.OPEN)
  t.ok(open.length >= 70, `${open.length} are open`)
  open.at(-1)?.send('hello')
  t.equal(String((await once(open.at(-1) ?? t, 'message'))[0]), 'hello', 'the others are served meanwhile')
  await stopped
  await until(() => closed() === 120)
})
