// A runtime that cannot be reached yet: requests of which nothing was sent are sent again for a while, whatever their kind.
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { Activity, type Route } from '@tenantry/contract'
import t from 'tap'
import { Value } from 'typebox/value'
import { until } from '#test/support/until.ts'
import { send, sendRaw, startSetting, token, type Setting } from './support/gateway.ts'

const unreachable = ['http://127.0.0.1:1', 'http://no-such-host.invalid:1']
const longTimeout = { limits: { reachTimeout: 20_000 } }
const handshake = 'GET /t/acme/raw HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n'

/** Returns the number of the tenant's open requests. */
async function open({ gateway }: Setting, { tenant_id }: Route): Promise<number> {
  const { body } = await send(gateway.internalPort, {
    path: '/internal/v1/activity',
    headers: { 'x-tenantry-internal': token },
  })
  const activity: unknown = JSON.parse(body)
  if (!Value.Check(Activity, activity)) throw new Error(body)
  return activity.tenants[tenant_id]?.open ?? 0
}

t.test('Each kind of request is served once and completely when its runtime becomes reachable', async (t) => {
  for (const runtime of unreachable) {
    const setting = await startSetting(t, longTimeout)
    const { gateway, upstream, add, put } = setting
    const route = await add('acme', { dedicated: true, runtimes: [runtime] })
    const read = send(gateway.port, { path: '/t/acme/head' })
    const write = send(gateway.port, { path: '/t/acme/echo', method: 'POST', body: 'b'.repeat(300_000) })
    const remove = send(gateway.port, { path: '/t/acme/head', method: 'DELETE' })
    const expecting = httpRequest({
      agent: false,
      host: '127.0.0.1',
      port: gateway.port,
      path: '/t/acme/echo',
      method: 'PUT',
      headers: { expect: '100-continue' },
    })
    expecting.on('continue', () => expecting.end('the body'))
    expecting.flushHeaders()
    const result = once(expecting, 'response')
    const raw = sendRaw(gateway.port, `${handshake}early`, { waitFor: /early$/ })
    await until(async () => (await open(setting, route)) === 5)
    t.equal(upstream.seen.length, 0)
    await put({ ...route, generation: 2, runtimes: [upstream.url] })
    const shown = JSON.parse((await read).body) as { headers: Record<string, string> }
    t.equal(shown.headers['x-tenantry-tenant'], route.tenant_id, 'each header is sent once')
    t.equal((await write).body.length, 300_000)
    t.equal((await remove).status, 200)
    const [response] = (await result) as [IncomingMessage]
    t.equal(String((await response.toArray())[0]), 'the body')
    t.match(await raw, /hello early$/)
    t.equal(upstream.seen.length, 5)
  }
})

t.test('An unreachable runtime returns 503 with Retry-After, for every kind of request', async (t) => {
  const setting = await startSetting(t, { limits: { reachTimeout: 200 } })
  const { port } = setting.gateway
  for (const [n, runtime] of unreachable.entries()) {
    await setting.add(`acme-${n}`, { dedicated: true, runtimes: [runtime] })
    const path = `/t/acme-${n}/echo`
    const upgrade = { connection: 'Upgrade', upgrade: 'raw' }
    for (const options of [
      { path },
      { path, method: 'POST', body: 'x' },
      { path, headers: upgrade },
      { path, method: 'PUT', headers: { expect: '100-continue', 'content-length': 1 }, body: 'x' },
    ]) {
      const { status, headers, body } = await send(port, options)
      t.same(
        [status, headers['retry-after'], (JSON.parse(body) as { code: string }).code],
        [503, '1', 'RUNTIME_UNREACHABLE'],
        `${runtime} ${JSON.stringify(options)}`,
      )
    }
  }
})

t.test('While a request is tried again its client may leave, and its tenant may be suspended', async (t) => {
  const setting = await startSetting(t, longTimeout)
  const { gateway, upstream, add, put } = setting
  const route = await add('acme', { dedicated: true, runtimes: unreachable.slice(0, 1) })
  const leaving = httpRequest({ agent: false, host: '127.0.0.1', port: gateway.port, path: '/t/acme/left' })
    .on('error', () => undefined)
    .end()
  await until(async () => (await open(setting, route)) === 1)
  leaving.destroy()
  await until(async () => (await open(setting, route)) === 0)
  const staying = send(gateway.port, { path: '/t/acme/x' })
  await until(async () => (await open(setting, route)) === 1)
  await put({ ...route, generation: 2, phase: 'suspended', reason: 'unpaid' })
  t.match(JSON.parse((await staying).body), { code: 'TENANT_SUSPENDED' })
  await put({ ...route, generation: 3, runtimes: [upstream.url] })
  t.equal((await send(gateway.port, { path: '/t/acme/bytes/3' })).status, 200)
  t.same(
    upstream.seen.map(({ url }) => url),
    ['/bytes/3'],
  )
})
