// Changes of the route table: what the control plane sends takes effect, and survives its absence and a restart.
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import type { Route } from '@tenantry/contract'
import t from 'tap'
import { WebSocket } from 'ws'
import { until } from '#test/support/until.ts'
import { appliedRoute, send, newTenantId, startSetting, type Setting } from './support/gateway.ts'

async function responseOf(setting: Setting, name: string): Promise<[status: number, code: string | undefined]> {
  const { status, body } = await send(setting.gateway.port, { path: `/t/${name}/head` })
  return [status, status === 200 ? undefined : (JSON.parse(body) as { code: string }).code]
}

t.test('Every phase has its response, and a change of phase takes effect', async (t) => {
  const setting = await startSetting(t)
  const route = await setting.add('acme', { phase: 'pending' })
  const pending = await send(setting.gateway.port, { path: '/t/acme/head' })
  t.equal(pending.status, 503)
  t.equal(pending.headers['retry-after'], '1')
  t.match(JSON.parse(pending.body), { statusCode: '503', code: 'TENANT_NOT_READY' })
  t.match(
    pending.headers,
    { 'access-control-allow-origin': '*', 'access-control-expose-headers': /Retry-After/ },
    'a web page can read it',
  )
  await setting.put({ ...route, generation: 2, phase: 'ready' })
  t.same(await responseOf(setting, 'acme'), [200, undefined])
  await setting.put({ ...route, generation: 3, phase: 'suspended', reason: 'The invoice of May is unpaid.' })
  const suspended = await send(setting.gateway.port, { path: '/t/acme/head' })
  t.equal(suspended.status, 403)
  t.match(JSON.parse(suspended.body), {
    statusCode: '403',
    code: 'TENANT_SUSPENDED',
    message: /The invoice of May is unpaid\./,
  })
  await setting.put({ ...route, generation: 4, phase: 'ready' })
  t.same(await responseOf(setting, 'acme'), [200, undefined])
  await setting.put({ ...route, generation: 5, phase: 'deleted' })
  t.same(await responseOf(setting, 'acme'), [404, 'TENANT_NOT_FOUND'])
})

t.test('Clients are disconnected when their tenant is suspended or deleted', async (t) => {
  const setting = await startSetting(t)
  const route = await setting.add('acme')
  const other = await setting.add('other')
  for (const end of ['suspended', 'deleted'] as const) {
    await setting.put({ ...route, generation: end === 'suspended' ? 2 : 4, phase: 'ready' })
    const open = async (name: string) => {
      const client = new WebSocket(`ws://127.0.0.1:${setting.gateway.port}/t/${name}/ws`)
      await once(client, 'open')
      return client
    }
    const client = await open('acme')
    const bystander = await open('other')
    const events = httpRequest({
      agent: false,
      host: '127.0.0.1',
      port: setting.gateway.port,
      path: '/t/acme/events',
    }).end()
    const [stream] = (await once(events, 'response')) as [IncomingMessage]
    const streamEnd = once(stream.resume(), 'error')
    const clientEnd = once(client, 'close')
    await setting.put({ ...route, generation: end === 'suspended' ? 3 : 5, phase: end })
    await Promise.all([clientEnd, streamEnd])
    bystander.send('still here')
    t.equal(String((await once(bystander, 'message'))[0]), 'still here')
    bystander.terminate()
  }
  t.equal((await responseOf(setting, other.name))[0], 200)
})

t.test('A connection that opens while its tenant is suspended ends, and a short suspension ends none', async (t) => {
  const setting = await startSetting(t)
  const route = await setting.add('acme')
  const connect = (path: string) => new WebSocket(`ws://127.0.0.1:${setting.gateway.port}/t/acme/${path}`)
  const [late, open] = [connect('late'), connect('ws')]
  await once(open, 'open')
  await until(() => setting.upstream.upgrades.length === 1, 'the request at the runtime')
  await setting.put({ ...route, generation: 2, phase: 'suspended' })
  await setting.put({ ...route, generation: 3, phase: 'ready' })
  const suspended = await setting.add('other')
  const other = new WebSocket(`ws://127.0.0.1:${setting.gateway.port}/t/other/ws`)
  await once(other, 'open')
  await setting.put({ ...suspended, generation: 2, phase: 'suspended' })
  await once(other, 'close')
  // The connections of the first tenant were to end before that one.
  open.send('still here')
  t.equal(String((await once(open, 'message'))[0]), 'still here')
  await setting.put({ ...route, generation: 4, phase: 'suspended' })
  const ended = once(open, 'close')
  const opened = once(late, 'open')
  for (const upgrade of setting.upstream.upgrades) upgrade()
  await opened
  await Promise.all([ended, once(late, 'close')])
})

t.test('A new name applies at once, and the old one is free for another tenant', async (t) => {
  const setting = await startSetting(t)
  const first = await setting.add('acme')
  await setting.put({ ...first, generation: 2, name: 'apex' })
  t.same(await responseOf(setting, 'acme'), [404, 'TENANT_NOT_FOUND'])
  t.same(await responseOf(setting, 'apex'), [200, undefined])
  const second = await setting.add('acme')
  await responseOf(setting, 'acme')
  t.equal(setting.upstream.seen.at(-1)?.headers['x-tenantry-tenant'], second.tenant_id)
  await responseOf(setting, 'apex')
  t.equal(setting.upstream.seen.at(-1)?.headers['x-tenantry-tenant'], first.tenant_id)
})

t.test('Two tenants may exchange their names in either order', async (t) => {
  const setting = await startSetting(t)
  const a = await setting.add('alpha')
  const b = await setting.add('beta')
  await setting.put({ ...a, generation: 2, name: 'beta' })
  await setting.put({ ...b, generation: 2, name: 'alpha' })
  await responseOf(setting, 'beta')
  t.equal(setting.upstream.seen.at(-1)?.headers['x-tenantry-tenant'], a.tenant_id)
  await responseOf(setting, 'alpha')
  t.equal(setting.upstream.seen.at(-1)?.headers['x-tenantry-tenant'], b.tenant_id)
})

t.test('A deleted tenant releases only its own claim to a name', async (t) => {
  const setting = await startSetting(t)
  const gone = await setting.add('acme')
  const heir = await setting.add('acme')
  await setting.put({ ...gone, generation: 2, phase: 'deleted' })
  await responseOf(setting, 'acme')
  t.equal(setting.upstream.seen.at(-1)?.headers['x-tenantry-tenant'], heir.tenant_id)
  setting.control.routes.remove(gone.tenant_id)
  await until(async () => (await appliedRoute(setting.gateway, gone.tenant_id)).status === 404)
  t.same(await responseOf(setting, 'acme'), [200, undefined])
  const rival = await setting.add('acme')
  await setting.put({ ...rival, generation: 2, name: 'rival' })
  await responseOf(setting, 'acme')
  t.equal(setting.upstream.seen.at(-1)?.headers['x-tenantry-tenant'], heir.tenant_id, 'the first claim holds again')
  setting.control.routes.remove(heir.tenant_id)
  await until(async () => (await responseOf(setting, 'acme'))[0] === 404)
})

t.test('An older generation never replaces a newer one', async (t) => {
  const setting = await startSetting(t)
  const route = await setting.add('acme', { generation: 5 })
  setting.control.routes.put({ ...route, generation: 4, phase: 'suspended' })
  await setting.add('after')
  t.same(await responseOf(setting, 'acme'), [200, undefined])
})

t.test('Lines of an unknown form are skipped and reported', async (t) => {
  const setting = await startSetting(t)
  await until(() => setting.control.routes.watchers === 1)
  setting.control.routes.sendRaw('{"type":"put","entry":{"tenant_id":"../../etc","name":"x"}}')
  setting.control.routes.sendRaw('{"type":"from-the-future"}')
  await setting.add('acme')
  t.same(await responseOf(setting, 'acme'), [200, undefined])
  t.ok(setting.errors.length >= 2, 'the errors are reported')
})

t.test('Without a control plane the gateway continues to serve, also after a restart', async (t) => {
  const setting = await startSetting(t)
  const route = await setting.add('acme')
  await setting.add('held', { phase: 'suspended', reason: 'unpaid' })
  const file = join(setting.data, 'routes.ndjson')
  await until(async () => (await readFile(file, 'utf8').catch(() => '')).includes('unpaid'), 'the snapshot')
  t.equal((await stat(file)).mode & 0o777, 0o600)
  await setting.control.stop()
  t.same(await responseOf(setting, 'acme'), [200, undefined])
  await setting.restart()
  t.same(await responseOf(setting, 'acme'), [200, undefined])
  t.same(await responseOf(setting, 'held'), [403, 'TENANT_SUSPENDED'])
  t.match(JSON.parse((await send(setting.gateway.port, { path: '/health' })).body), { routes: 2, routes_synced: false })
  // The gateway applies what changed in the meantime once the control plane is back.
  setting.control.routes.remove(route.tenant_id)
  await setting.control.start()
  await until(async () => (await responseOf(setting, 'acme'))[0] === 404, 'the deletion')
})

t.test('Routes of a thousand tenants are correct after renames and deletions', async (t) => {
  const setting = await startSetting(t)
  const routes: Route[] = []
  for (let n = 0; n < 1000; n++) {
    const route: Route = {
      tenant_id: newTenantId(),
      name: `tenant-${n}`,
      generation: 1,
      phase: 'ready',
      runtimes: [setting.upstream.url],
      dedicated: false,
    }
    routes.push(route)
    setting.control.routes.put(route)
  }
  for (const [n, route] of routes.entries()) {
    if (n % 3 === 0) setting.control.routes.put({ ...route, generation: 2, name: `renamed-${n}` })
    if (n % 3 === 1) setting.control.routes.remove(route.tenant_id)
  }
  await setting.add('last')
  for (let n = 0; n < 1000; n += 37) {
    const name = n % 3 === 0 ? `renamed-${n}` : `tenant-${n}`
    const [status] = await responseOf(setting, name)
    t.equal(status, n % 3 === 1 ? 404 : 200, name)
    if (status === 200) t.equal(setting.upstream.seen.at(-1)?.headers['x-tenantry-tenant'], routes[n]?.tenant_id)
    if (n % 3 === 0) t.equal((await responseOf(setting, `tenant-${n}`))[0], 404, 'the old name')
  }
})
