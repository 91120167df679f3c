// Tenants with their own runtime: it receives the tenant's token with every kind of request, never the installation's
// token.
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { tenantToken } from '@tenantry/contract'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { until } from '#test/support/until.ts'
import { appliedRoute, send, newTenantId, sendRaw, startSetting, token } from './support/gateway.ts'
import { startUpstream } from './support/upstream.ts'

async function ownRuntime(t: Test) {
  const runtime = await startUpstream()
  t.teardown(() => runtime.stop())
  return runtime
}

t.test("Every kind of request carries the tenant's token to its own runtime", async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  const own = await ownRuntime(t)
  const { tenant_id } = await add('acme', { dedicated: true, runtimes: [own.url] })
  await add('shared')
  const { port } = gateway
  for (const name of ['acme', 'shared']) {
    await send(port, { path: `/t/${name}/bytes/3` })
    await send(port, { path: `/t/${name}/echo`, method: 'POST', body: 'ordinary' })
    const events = httpRequest({
      agent: false,
      host: '127.0.0.1',
      port,
      path: `/t/${name}/events`,
      headers: { accept: 'text/event-stream' },
    }).end()
    await once(events, 'response')
    events.destroy()
    const expecting = httpRequest({
      agent: false,
      host: '127.0.0.1',
      port,
      path: `/t/${name}/echo`,
      method: 'PUT',
      headers: { expect: '100-continue' },
    })
    expecting.flushHeaders()
    await once(expecting, 'continue')
    expecting.end('expecting')
    const [response] = (await once(expecting, 'response')) as [IncomingMessage]
    t.equal(String((await response.toArray())[0]), 'expecting')
    const early = httpRequest({
      agent: false,
      host: '127.0.0.1',
      port,
      path: `/t/${name}/early`,
      method: 'PUT',
      headers: { expect: '100-continue', 'content-length': 9 },
    })
    early.flushHeaders()
    t.equal(((await once(early, 'response')) as [IncomingMessage])[0].statusCode, 413)
    early.destroy()
    const socket = new WebSocket(`ws://127.0.0.1:${port}/t/${name}/ws`, {
      headers: { 'x-tenantry-internal': 'forged' },
    })
    await once(socket, 'open')
    socket.terminate()
    const handshake = `GET /t/${name}/denied HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n`
    t.match(await sendRaw(port, handshake), /^HTTP\/1\.1 401 /)
  }
  t.equal(own.seen.length, 7)
  for (const { url, headers } of own.seen) t.equal(headers['x-tenantry-internal'], tenantToken(token, tenant_id), url)
  t.notMatch(JSON.stringify(own.seen), token, 'the runtime never receives the token of the installation')
  t.equal(upstream.seen.length, 7)
  for (const { url, headers } of upstream.seen)
    t.equal(headers['x-tenantry-internal'], token, `${url} of a shared tenant`)
})

t.test('A tenant that moves to its own runtime is known there by its own token', async (t) => {
  const { gateway, upstream, add, put } = await startSetting(t)
  const own = await ownRuntime(t)
  const route = await add('acme')
  await send(gateway.port, { path: '/t/acme/x' })
  await put({ ...route, generation: 2, dedicated: true, runtimes: [own.url] })
  await send(gateway.port, { path: '/t/acme/x' })
  t.equal(upstream.seen[0]?.headers['x-tenantry-internal'], token)
  t.equal(own.seen[0]?.headers['x-tenantry-internal'], tenantToken(token, route.tenant_id))
  await put({ ...route, generation: 3, dedicated: false })
  await send(gateway.port, { path: '/t/acme/x' })
  t.equal(upstream.seen[1]?.headers['x-tenantry-internal'], token)
})

t.test("A repeated request to a tenant's own runtime carries the tenant's token", async (t) => {
  const { gateway, add } = await startSetting(t)
  const own = await ownRuntime(t)
  await add('acme', { dedicated: true, runtimes: ['http://127.0.0.1:1', own.url] })
  for (let n = 0; n < 4; n++) await send(gateway.port, { path: '/t/acme/x' })
  t.equal(own.seen.length, 4)
  t.notMatch(JSON.stringify(own.seen), token)
})

t.test('A tenant that is suspended for payment returns 402 with the reason, otherwise 403', async (t) => {
  const { gateway, add, put } = await startSetting(t)
  const route = await add('acme', {
    phase: 'suspended',
    reason: 'The invoice of May is unpaid.',
    payment_required: true,
  })
  const unpaid = await send(gateway.port, { path: '/t/acme/x' })
  t.equal(unpaid.status, 402)
  t.same(JSON.parse(unpaid.body), {
    statusCode: '402',
    error: 'payment_required',
    code: 'PAYMENT_REQUIRED',
    message: 'The tenant is suspended: The invoice of May is unpaid.',
  })
  await put({ ...route, generation: 2, payment_required: false })
  const held = await send(gateway.port, { path: '/t/acme/x' })
  t.equal(held.status, 403)
  t.match(JSON.parse(held.body), { code: 'TENANT_SUSPENDED', message: /The invoice of May/ })
})

t.test('Routes of an earlier version are ignored until the control plane sends them again', async (t) => {
  const setting = await startSetting(t)
  const tenantId = newTenantId()
  const old = { tenant_id: tenantId, name: 'acme', generation: 3, phase: 'ready', runtimes: [setting.upstream.url] }
  const known = { ...old, tenant_id: newTenantId(), name: 'known', dedicated: false }
  await setting.control.stop()
  await setting.gateway.stop(0)
  await writeFile(join(setting.data, 'routes.ndjson'), `${JSON.stringify(old)}\n${JSON.stringify(known)}`)
  await setting.restart()
  t.equal((await send(setting.gateway.port, { path: '/t/acme/x' })).status, 404)
  t.equal((await send(setting.gateway.port, { path: '/t/known/x' })).status, 200)
  setting.control.routes.put({ ...old, phase: 'ready', dedicated: false })
  await setting.control.start()
  await until(async () => (await appliedRoute(setting.gateway, tenantId)).status === 200, 'the route')
  t.equal((await send(setting.gateway.port, { path: '/t/acme/x' })).status, 200)
})
