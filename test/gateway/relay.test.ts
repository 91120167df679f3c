// The relay of the internal server: which requests pass between the control plane and a tenant's own runtime.
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import { setTimeout as after } from 'node:timers/promises'
import { tenantToken } from '@tenantry/contract'
import t, { type Test } from 'tap'
import { until } from '#test/support/until.ts'
import { startFrontedSetting } from './support/control-front.ts'
import { send, newTenantId, startSetting, token, type Setting } from './support/gateway.ts'
import { startUpstream } from './support/upstream.ts'

const watchPath = '/internal/v1/watch/manifests'

function asInstallation({ gateway }: Setting, path: string, method = 'GET') {
  return send(gateway.internalPort, { path, method, headers: { 'x-tenantry-internal': token } })
}

async function openWatch(t: Test, { gateway }: Setting, withToken: string, path = watchPath): Promise<IncomingMessage> {
  const request = httpRequest({
    agent: false,
    host: '127.0.0.1',
    port: gateway.internalPort,
    path,
    headers: { 'x-tenantry-internal': withToken },
  })
    .on('error', () => undefined)
    .end()
  t.teardown(() => request.destroy())
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return response.on('error', () => undefined)
}

t.test("A tenant's runtime watches its manifest through the gateway with its own token", async (t) => {
  const setting = await startFrontedSetting(t)
  const served: ServerResponse[] = []
  setting.front.serveWatch = (response) => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson', 'x-other': 'no' }).write('{"type":"synced"}\n')
    served.push(response)
  }
  const own = tenantToken(token, newTenantId())
  const watch = await openWatch(t, setting, own)
  t.equal(watch.statusCode, 200)
  t.equal(watch.headers['content-type'], 'application/x-ndjson')
  t.same(setting.front.watchTokens, [own], "the control plane receives the tenant's token")
  let got = ''
  watch.setEncoding('utf8').on('data', (text: string) => (got += text))
  await until(() => got === '{"type":"synced"}\n', 'the first line')
  served[0]?.write('{"type":"ping"}\n')
  await until(() => got.endsWith('{"type":"ping"}\n'), 'the next line at once')
  const closed = once(served[0] ?? watch, 'close')
  watch.destroy()
  await closed
  const second = await openWatch(t, setting, own)
  const ended = once(second.resume(), 'end')
  served[1]?.end()
  await ended
  const third = await openWatch(t, setting, own)
  third.resume()
  served[2]?.destroy()
  await until(() => third.destroyed)
  t.notOk(third.complete, 'a stream that was cut off is not complete')
  const last = await openWatch(t, setting, own, `${watchPath}?siblings=1`)
  t.equal(last.statusCode, 200)
  t.same(setting.front.watchPaths, [watchPath, watchPath, watchPath, `${watchPath}?siblings=1`])
})

t.test("A tenant's runtime reads only the usage of its own tenant through the gateway", async (t) => {
  const setting = await startFrontedSetting(t)
  const [id, other] = [newTenantId(), newTenantId()]
  const own = tenantToken(token, id)
  const requestUsage = (path: string, method = 'GET') =>
    send(setting.gateway.internalPort, { path, method, headers: { 'x-tenantry-internal': own } })
  const path = `/internal/v1/tenants/${id}/own-usage?month=2026-11&granularity=day`
  const response = await requestUsage(path)
  t.same([response.status, response.body], [200, '{"month":"2026-11"}'])
  t.same(setting.front.usageRequested, [`${own} ${path}`])
  const table = await send(setting.gateway.internalPort, {
    path,
    method: 'GET',
    headers: { 'x-tenantry-internal': own, accept: 'text/csv' },
  })
  t.same(
    [table.status, table.headers['content-type'], table.body],
    [200, 'text/csv; charset=utf-8', 'month\r\n2026-11\r\n'],
    'in the requested format',
  )
  for (const rejected of [
    `/internal/v1/tenants/${other}/own-usage`,
    `/internal/v1/tenants/${id}/own-usage/../../${other}/own-usage`,
    `${path}&x=/../${other}`,
    `/internal/v1/tenants/${id}/usage`,
  ]) {
    t.ok((await requestUsage(rejected)).status >= 400, rejected)
  }
  t.ok((await requestUsage(path, 'POST')).status >= 400)
  t.equal(setting.front.usageRequested.length, 2)
})

t.test('A reader that stops reading pauses the control plane', async (t) => {
  const setting = await startFrontedSetting(t)
  const line = `${'x'.repeat(64 * 1024)}\n`
  let sent = 0
  let isHeldBack = false
  setting.front.serveWatch = (response) => {
    response.writeHead(200)
    const fill = () => {
      isHeldBack = false
      while (!isHeldBack && sent < 256 * 1024 * 1024) {
        sent += line.length
        isHeldBack = !response.write(line)
      }
    }
    response.on('drain', fill)
    fill()
  }
  const watch = await openWatch(t, setting, tenantToken(token, newTenantId()))
  t.equal(watch.statusCode, 200)
  let before = -1
  await until(async () => {
    const isStill = before === sent
    before = sent
    await after(100)
    return isStill && isHeldBack
  }, 'a standstill')
  t.ok(sent < 64 * 1024 * 1024, `${sent} bytes are on the way`)
})

t.test("The control plane's response to a watch passes, and its absence returns an error", async (t) => {
  const setting = await startFrontedSetting(t)
  setting.front.serveWatch = (response) =>
    response.writeHead(403, { 'content-type': 'application/json' }).end('{"code":"X"}')
  const own = tenantToken(token, newTenantId())
  const headers = { 'x-tenantry-internal': own }
  const rejected = await send(setting.gateway.internalPort, { path: watchPath, headers })
  t.same([rejected.status, rejected.body], [403, '{"code":"X"}'])
  setting.front.serveWatch = (response) => response.destroy()
  const broken = await send(setting.gateway.internalPort, { path: watchPath, headers })
  t.match([broken.status, JSON.parse(broken.body)], [502, { statusCode: '502', code: 'CONTROL_FAILED' }])
  await setting.restart({ controlUrl: 'http://127.0.0.1:1' })
  const away = await send(setting.gateway.internalPort, { path: watchPath, headers })
  t.match([away.status, JSON.parse(away.body)], [503, { statusCode: '503', code: 'CONTROL_UNREACHABLE' }])
})

t.test('The watches of a tenant are limited, and a closed watch frees its slot', async (t) => {
  const setting = await startFrontedSetting(t, { limits: { watchesPerTenant: 2 } })
  const [own, other] = [tenantToken(token, newTenantId()), tenantToken(token, newTenantId())]
  const first = await openWatch(t, setting, own)
  await openWatch(t, setting, own)
  const third = await openWatch(t, setting, own)
  t.equal(third.statusCode, 503)
  t.equal((await openWatch(t, setting, other)).statusCode, 200)
  first.destroy()
  await until(async () => (await openWatch(t, setting, own)).statusCode === 200, 'the free slot')
})

t.test("A tenant's token opens only its watch, and no other token opens the watch", async (t) => {
  const setting = await startFrontedSetting(t)
  const { gateway, front, upstream, add } = setting
  const { tenant_id } = await add('acme', { dedicated: true })
  const other = await add('other', { dedicated: true })
  const own = tenantToken(token, tenant_id)
  const paths = [
    `/internal/v1/routes/${tenant_id}`,
    `/internal/v1/routes/${other.tenant_id}`,
    '/internal/v1/routes/',
    '/internal/v1/activity',
    ...['health', 'usage', 'storage', 'data'].flatMap((resource) =>
      [tenant_id, other.tenant_id].map((id) => `/internal/v1/tenants/${id}/${resource}`),
    ),
    `/internal/v1/tenants/${tenant_id}/wake`,
    '/internal/v1/watch/routes',
    '/internal/v1/usage',
    `${watchPath}/`,
    `${watchPath}?x`,
    `${watchPath}?siblings=1&region=local`,
    `${watchPath}?siblings=-1`,
    '/',
  ]
  for (const path of paths) {
    for (const method of ['GET', 'POST', 'DELETE']) {
      const { status, body } = await send(gateway.internalPort, {
        path,
        method,
        headers: { 'x-tenantry-internal': own },
      })
      t.match([status, JSON.parse(body)], [403, { code: 'FORBIDDEN' }], `${method} ${path}`)
    }
  }
  t.equal(
    (await send(gateway.internalPort, { path: watchPath, method: 'POST', headers: { 'x-tenantry-internal': own } }))
      .status,
    403,
  )
  for (const wrong of [
    undefined,
    '',
    'x',
    `${tenant_id}.${'A'.repeat(43)}`,
    `${own}x`,
    `${other.tenant_id}${own.slice(tenant_id.length)}`,
  ]) {
    const headers = wrong === undefined ? {} : { 'x-tenantry-internal': wrong }
    for (const path of [watchPath, '/internal/v1/activity', `/internal/v1/tenants/${tenant_id}/health`]) {
      t.equal((await send(gateway.internalPort, { path, headers })).status, 403, `${wrong ?? 'none'} at ${path}`)
    }
  }
  t.equal((await asInstallation(setting, watchPath)).status, 404, 'the installation watches at the control plane')
  t.same(front.watchTokens, [])
  t.equal(upstream.seen.length, 0)
})

t.test("The control plane reaches a tenant's own runtime, which receives the tenant's token", async (t) => {
  const setting = await startSetting(t)
  const { upstream, add } = setting
  const { tenant_id } = await add('acme', { dedicated: true, phase: 'pending' })
  const calls: [string, string][] = [
    ['GET', 'health'],
    ['GET', 'usage'],
    ['DELETE', 'data'],
  ]
  for (const [method, resource] of calls) {
    const path = `/internal/v1/tenants/${tenant_id}/${resource}`
    const { status, headers, body } = await asInstallation(setting, path, method)
    t.equal(status, 200)
    t.equal(headers['content-type'], 'application/json')
    t.match(JSON.parse(body), { method, url: path, headers: { 'x-tenantry-internal': tenantToken(token, tenant_id) } })
    t.equal((await asInstallation(setting, path, method === 'GET' ? 'DELETE' : 'GET')).status, 405)
    t.equal((await asInstallation(setting, path, 'POST')).status, 405)
  }
  t.equal(upstream.seen.length, 3)
  t.notMatch(JSON.stringify(upstream.seen), token)
  for (const path of [
    `/internal/v1/tenants/${tenant_id}/health/`,
    `/internal/v1/tenants/${tenant_id}/health?x`,
    `/internal/v1/tenants/${tenant_id}/../x`,
  ]) {
    t.equal((await asInstallation(setting, path)).status, 404, path)
  }
})

t.test('An unknown tenant and a shared one are not found', async (t) => {
  const setting = await startSetting(t)
  const shared = await setting.add('shared')
  for (const id of [newTenantId(), shared.tenant_id]) {
    const { status, body } = await asInstallation(setting, `/internal/v1/tenants/${id}/health`)
    t.match([status, JSON.parse(body)], [404, { statusCode: '404', code: 'TENANT_NOT_FOUND' }])
  }
  t.equal(setting.upstream.seen.length, 0)
})

t.test('The statuses of a runtime pass, and an unreachable, broken or late runtime returns an error', async (t) => {
  const setting = await startSetting(t, { limits: { relayTimeout: 100 } })
  let result: (response: ServerResponse) => unknown = () => undefined
  const server = createServer((_, response) => result(response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
  const route = await setting.add('acme', { dedicated: true, runtimes: [url] })
  const health = () => asInstallation(setting, `/internal/v1/tenants/${route.tenant_id}/health`)
  for (const status of [200, 403, 404, 500, 503]) {
    result = (response) => response.writeHead(status).end(String(status))
    const { status: got, body } = await health()
    t.same([got, body], [status, String(status)])
  }
  result = (response) => response.writeHead(204).end()
  t.equal((await health()).status, 204)
  result = () => undefined
  t.match(JSON.parse((await health()).body), { statusCode: '504', code: 'RUNTIME_TIMEOUT' })
  result = (response) => response.destroy()
  t.match(JSON.parse((await health()).body), { statusCode: '502', code: 'BAD_GATEWAY' })
  result = (response) => response.writeHead(200, { 'content-length': 100 }).write('half', () => response.destroy())
  await t.rejects(health(), 'half a response is cut off')
  for (const [n, runtimes] of [['http://127.0.0.1:1'], [], ['http://no-such-host.invalid:1']].entries()) {
    await setting.put({ ...route, generation: 2 + n, runtimes })
    const { status, body } = await health()
    t.match([status, JSON.parse(body)], [503, { statusCode: '503', code: 'RUNTIME_UNREACHABLE' }])
  }
})

t.test('A caller that leaves aborts its call to the runtime', async (t) => {
  const setting = await startSetting(t)
  const runtime = await startUpstream()
  t.teardown(() => runtime.stop())
  const { tenant_id } = await setting.add('acme', { dedicated: true, runtimes: [`${runtime.url}/hang`] })
  const call = httpRequest({
    agent: false,
    host: '127.0.0.1',
    port: setting.gateway.internalPort,
    path: `/internal/v1/tenants/${tenant_id}/health`,
    headers: { 'x-tenantry-internal': token },
  })
    .on('error', () => undefined)
    .end()
  await until(() => runtime.open === 1)
  call.destroy()
  await until(() => runtime.aborted === 1)
  t.equal(runtime.open, 0)
})
