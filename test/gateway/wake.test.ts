// Requests for a paused tenant: the gateway holds them until it is awake, does not read their bodies, and limits their
// wait.
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { Activity } from '@tenantry/contract'
import t from 'tap'
import { Value } from 'typebox/value'
import { WebSocket } from 'ws'
import { until } from '#test/support/until.ts'
import { startFrontedSetting } from './support/control-front.ts'
import { send, sendRaw, token, type Setting } from './support/gateway.ts'
import { megabyte } from './support/upstream.ts'

/** Returns the number of requests that wait or are otherwise open. */
async function open({ gateway }: Setting, tenantId: string): Promise<number> {
  const { body } = await send(gateway.internalPort, {
    path: '/internal/v1/activity',
    headers: { 'x-tenantry-internal': token },
  })
  const activity: unknown = JSON.parse(body)
  if (!Value.Check(Activity, activity)) throw new Error(body)
  return activity.tenants[tenantId]?.open ?? 0
}

t.test('A request wakes its tenant, and is served when the tenant is ready', async (t) => {
  const setting = await startFrontedSetting(t)
  const { gateway, front, upstream, add, put } = setting
  const route = await add('acme', { phase: 'paused', dedicated: true })
  const responses = Array.from({ length: 5 }, (_, n) =>
    send(gateway.port, { path: `/t/acme/echo?${n}`, method: 'POST', body: `body ${n}` }),
  )
  await until(async () => (await open(setting, route.tenant_id)) === 5 && front.wakes.length > 0)
  t.same(new Set(front.wakes), new Set([route.tenant_id]))
  t.equal(upstream.seen.length, 0, 'nothing reached the runtime')
  await put({ ...route, generation: 2, phase: 'ready' })
  for (const [n, { status, body }] of (await Promise.all(responses)).entries())
    t.same([status, body], [200, `body ${n}`])
  t.ok(front.wakes.length < 5, 'not every request wakes the tenant')
  t.equal((await send(gateway.port, { path: '/t/acme/x' })).status, 200)
})

t.test('A body is not read while its request is held, and passes completely afterwards', async (t) => {
  const setting = await startFrontedSetting(t)
  const { gateway, upstream, add, put } = setting
  const route = await add('acme', { phase: 'paused', dedicated: true })
  const size = 64 * megabyte
  const upload = httpRequest({
    agent: false,
    host: '127.0.0.1',
    port: gateway.port,
    path: '/t/acme/sink',
    method: 'PUT',
    headers: { 'content-length': size },
  })
  upload.write(Buffer.alloc(size, 'u'))
  upload.end()
  await until(async () => (await open(setting, route.tenant_id)) === 1)
  await until(() => (upload.socket?.bytesWritten ?? 0) > 0)
  // The kernel holds some bytes for both ends, and the gateway a few. The rest is still at the client.
  t.ok(upload.writableLength > size / 2, `${upload.writableLength} bytes wait at the client`)
  t.equal(upstream.received, 0)
  await put({ ...route, generation: 2, phase: 'ready' })
  const [response] = (await once(upload, 'response')) as [IncomingMessage]
  t.equal(String((await response.toArray())[0]), String(size))
})

t.test('A client that waits for 100 Continue and one that upgrades are held too', async (t) => {
  const setting = await startFrontedSetting(t)
  const { gateway, add, put } = setting
  const route = await add('acme', { phase: 'paused', dedicated: true })
  const expecting = httpRequest({
    agent: false,
    host: '127.0.0.1',
    port: gateway.port,
    path: '/t/acme/echo',
    method: 'PUT',
    headers: { expect: '100-continue' },
  })
  let isRequested = false
  expecting.on('continue', () => {
    isRequested = true
    expecting.end('the body')
  })
  expecting.flushHeaders()
  const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/t/acme/ws`)
  const opened = once(socket, 'open')
  const raw = sendRaw(
    gateway.port,
    'GET /t/acme/raw HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\nearly bytes',
    { waitFor: /early bytes$/ },
  )
  await until(async () => (await open(setting, route.tenant_id)) === 3)
  t.notOk(isRequested, 'the body is not requested')
  await put({ ...route, generation: 2, phase: 'ready' })
  const [response] = (await once(expecting, 'response')) as [IncomingMessage]
  t.equal(String((await response.toArray())[0]), 'the body')
  await opened
  socket.send('hello')
  t.equal(String((await once(socket, 'message'))[0]), 'hello')
  socket.terminate()
  t.match(await raw, /hello early bytes$/)
})

t.test('Too many requests get 503 with Retry-After, and a client that leaves frees its slot', async (t) => {
  const setting = await startFrontedSetting(t, { limits: { waitingPerTenant: 2 } })
  const { gateway, add, put } = setting
  const route = await add('acme', { phase: 'paused', dedicated: true })
  const leaving = httpRequest({ agent: false, host: '127.0.0.1', port: gateway.port, path: '/t/acme/x' })
    .on('error', () => undefined)
    .end()
  const staying = send(gateway.port, { path: '/t/acme/stays' })
  await until(async () => (await open(setting, route.tenant_id)) === 2)
  const rejected = await send(gateway.port, { path: '/t/acme/x' })
  t.equal(rejected.status, 503)
  t.equal(rejected.headers['retry-after'], '2')
  t.match(JSON.parse(rejected.body), { statusCode: '503', code: 'TOO_MANY_WAITING' })
  leaving.destroy()
  await until(async () => (await open(setting, route.tenant_id)) === 1)
  const next = send(gateway.port, { path: '/t/acme/next' })
  await until(async () => (await open(setting, route.tenant_id)) === 2)
  await put({ ...route, generation: 2, phase: 'ready' })
  t.same([(await staying).status, (await next).status], [200, 200])
  t.same(setting.upstream.seen.map(({ url }) => url).sort(), ['/next', '/stays'], 'a client that left is not served')
})

t.test('A held request gets 503 with Retry-After at its deadline', async (t) => {
  const setting = await startFrontedSetting(t, { limits: { wakeTimeout: 50 } })
  setting.front.wakeResponse = () => 'hang'
  await setting.add('acme', { phase: 'paused', dedicated: true })
  const late = await send(setting.gateway.port, { path: '/t/acme/x', method: 'POST', body: 'x' })
  t.equal(late.status, 503)
  t.equal(late.headers['retry-after'], '2')
  t.match(JSON.parse(late.body), { code: 'TENANT_WAKING' })
  const expecting = await sendRaw(
    setting.gateway.port,
    'PUT /t/acme/x HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n',
  )
  t.match(expecting, /^HTTP\/1\.1 503 [^]*connection: close/i, 'an unrequested body ends its connection')
  t.notMatch(expecting, /100 Continue/)
})

t.test('A wake that fails is repeated, and one that is rejected is reported to the client', async (t) => {
  const setting = await startFrontedSetting(t)
  const { front, gateway, add, put } = setting
  const route = await add('acme', { phase: 'paused', dedicated: true })
  front.wakeResponse = () => (front.wakes.length < 3 ? 503 : 202)
  const response = send(gateway.port, { path: '/t/acme/x' })
  await until(() => front.wakes.length >= 3)
  await put({ ...route, generation: 2, phase: 'ready' })
  t.equal((await response).status, 200)
  front.wakeResponse = () => 409
  await put({ ...route, generation: 3, phase: 'paused' })
  const rejected = await send(gateway.port, { path: '/t/acme/x' })
  t.equal(rejected.status, 503)
  t.equal(rejected.headers['retry-after'], '5')
  t.match(JSON.parse(rejected.body), { code: 'TENANT_NOT_WOKEN' })
})

t.test('Held requests are rejected when their tenant is suspended or the gateway stops', async (t) => {
  const setting = await startFrontedSetting(t)
  const { gateway, add, put } = setting
  const route = await add('acme', { phase: 'paused', dedicated: true })
  const other = await add('other', { phase: 'paused', dedicated: true })
  const suspended = send(gateway.port, { path: '/t/acme/x' })
  const stopped = send(gateway.port, { path: '/t/other/x' })
  await until(async () => (await open(setting, route.tenant_id)) === 1 && (await open(setting, other.tenant_id)) === 1)
  await put({ ...route, generation: 2, phase: 'suspended', payment_required: true, reason: 'unpaid' })
  t.equal((await suspended).status, 402)
  const stop = gateway.stop()
  const { status, headers } = await stopped
  t.same([status, headers['retry-after'], headers.connection], [503, '2', 'close'])
  await stop
})

t.test('Internal paths do not wake a paused tenant, and no request waits for a pending one', async (t) => {
  const setting = await startFrontedSetting(t)
  const { gateway, front, add } = setting
  await add('acme', { phase: 'paused', dedicated: true })
  await add('young', { phase: 'pending', dedicated: true })
  t.equal((await send(gateway.port, { path: '/t/acme/internal/v1/x' })).status, 404)
  const pending = await send(gateway.port, { path: '/t/young/x' })
  t.same([pending.status, pending.headers['retry-after']], [503, '1'])
  t.same(front.wakes, [])
})
