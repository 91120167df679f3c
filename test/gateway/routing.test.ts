// Which tenant a request belongs to, by host or by path, and what of the request reaches the runtime.
import t from 'tap'
import { resolve } from '#gateway/resolve/resolve.ts'
import { isInternalPath } from '#gateway/resolve/internal-path.ts'
import { until } from '#test/support/until.ts'
import { send, startSetting } from './support/gateway.ts'

t.test('A tenant is found by a host below the domain, otherwise by path', async (t) => {
  const cases: [host: string, path: string, found: ReturnType<typeof resolve>][] = [
    ['acme.localhost', '/a', { name: 'acme', path: '/a', basePath: '' }],
    ['ACME.LocalHost:8080', '/a?b', { name: 'acme', path: '/a?b', basePath: '' }],
    ['acme.localhost.', '/', { name: 'acme', path: '/', basePath: '' }],
    ['acme.localhost.:80', '/t/other/x', { name: 'acme', path: '/t/other/x', basePath: '' }],
    ['a.b.localhost', '/t/other/x', { name: 'a.b', path: '/t/other/x', basePath: '' }],
    ['localhost:8080', '/t/acme/x', { name: 'acme', path: '/x', basePath: '/t/acme' }],
    ['localhost.', '/t/acme', { name: 'acme', path: '/', basePath: '/t/acme' }],
    ['.localhost', '/t/acme?x=1', { name: 'acme', path: '/?x=1', basePath: '/t/acme' }],
    ['127.0.0.1:1', '/t/acme//%2e%2E/../a%00b', { name: 'acme', path: '//%2e%2E/../a%00b', basePath: '/t/acme' }],
    ['[::1]:8080', '/t/acme/', { name: 'acme', path: '/', basePath: '/t/acme' }],
    ['evil-localhost', '/t/acme/', { name: 'acme', path: '/', basePath: '/t/acme' }],
    ['acme.localhost.example', '/', undefined],
    ['localhost', '/', undefined],
    ['localhost', '/t', undefined],
    ['localhost', '/t/', undefined],
    ['localhost', '/t//x', undefined],
    ['localhost', '/T/acme/x', undefined],
    ['localhost', '/t/?x', undefined],
  ]
  for (const [host, path, found] of cases) t.same(resolve(host, path, 'localhost'), found, `${host} ${path}`)
  t.same(resolve('acme.eu.example.org', '/', 'eu.example.org'), { name: 'acme', path: '/', basePath: '' })
})

t.test('Internal paths are recognised in every notation', async (t) => {
  const internal = [
    '/internal',
    '/internal/v1/live',
    '/internal?x',
    '//internal/x',
    '/./internal/x',
    '/x/../internal/x',
    '/%69nternal/x',
    '/%2569nternal',
    '/Internal/x',
    '/%2e/internal',
    '/%2Finternal/x',
    '/\\internal\\x',
    '/rest/../internal/v1',
    '/rest/%2e%2e/internal/v1',
    '/storage/v1/..%2f../internal/x',
    '/internal;a=b/x',
    '/internal#x',
    '/a/%2e./internal',
  ]
  for (const path of internal) t.ok(isInternalPath(path), path)
  const open = [
    '/',
    '/rest/v1/internal',
    '/storage/v1/object/internal/x',
    '/storage/v1/object/b/internal/..',
    '/internals',
    '/%zz',
    '/functions/v1/invoke/internal',
    '/rest/v1/x?next=/internal/',
    '/storage/v1/object/b/a%20b/../c',
  ]
  for (const path of open) t.notOk(isInternalPath(path), path)
})

t.test('Requests reach the runtime by host and by path, byte for byte', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  const route = await add('acme')
  const byHost = await send(gateway.port, {
    path: '/head/a%2Fb//c?x=%20+&y',
    headers: { host: `ACME.localhost:${gateway.port}` },
  })
  t.equal(byHost.status, 200)
  t.equal(upstream.seen[0]?.url, '/head/a%2Fb//c?x=%20+&y')
  t.equal(upstream.seen[0]?.headers['x-tenantry-tenant'], route.tenant_id)
  t.equal(upstream.seen[0]?.headers['x-tenantry-base-path'], '')
  const byPath = await send(gateway.port, { path: '/t/acme/../head/%2e%2e/./?q=1?2' })
  t.equal(byPath.status, 200)
  t.equal(upstream.seen[1]?.url, '/../head/%2e%2e/./?q=1?2')
  t.equal(upstream.seen[1]?.headers['x-tenantry-base-path'], '/t/acme')
  const absolute = await send(gateway.port, {
    path: 'http://acme.localhost/head?z',
    headers: { host: 'acme.localhost' },
  })
  t.equal(absolute.status, 200)
  t.equal(upstream.seen[2]?.url, '/head?z')
})

t.test('A request for no tenant or for an internal path returns an error in the common form', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  await add('acme')
  const corpus: [path: string, host: string, status: number, code: string][] = [
    ['/t/missing/x', 'localhost', 404, 'TENANT_NOT_FOUND'],
    ['/x', 'missing.localhost', 404, 'TENANT_NOT_FOUND'],
    ['/t/acme/x', 'a.b.localhost', 404, 'TENANT_NOT_FOUND'],
    ['/x', 'localhost', 404, 'NOT_FOUND'],
    ['/internal/v1/live', 'localhost', 404, 'NOT_FOUND'],
    ['/t/acme/internal/v1/live', 'localhost', 404, 'NOT_FOUND'],
    ['/%69nternal/v1/tenants/t_00000000000000000000/data', 'acme.localhost', 404, 'NOT_FOUND'],
    ['*', 'acme.localhost', 400, 'INVALID_TARGET'],
    ['http://other.localhost/x', 'acme.localhost', 400, 'INVALID_TARGET'],
    ['/x', 'acme.localhost/evil', 400, 'INVALID_HOST'],
  ]
  for (const [path, host, status, code] of corpus) {
    const { body, headers, ...response } = await send(gateway.port, { path, method: 'OPTIONS', headers: { host } })
    t.equal(response.status, status, path)
    t.match(JSON.parse(body), { statusCode: String(status), code, error: /./, message: /./ }, path)
    t.equal(headers['content-type'], 'application/json; charset=utf-8')
    t.match(headers['x-request-id'], /^[0-9a-f-]{36}$/)
  }
  t.equal(upstream.seen.length, 0, 'no request reached a runtime')
})

t.test('The host of the gateway itself returns its health', async (t) => {
  const { gateway, add } = await startSetting(t)
  await add('acme')
  const health = () => send(gateway.port, { path: '/health', headers: { host: 'localhost' } })
  await until(async () => (await health()).body.includes('"quotas_synced":true'), 'the first call for leases')
  const { status, body } = await health()
  t.equal(status, 200)
  t.same(JSON.parse(body), { status: 'healthy', routes: 1, routes_synced: true, quotas_synced: true })
})

t.test('The internal server returns routes to callers with the token, and liveness to all', async (t) => {
  const { gateway, add } = await startSetting(t)
  const route = await add('acme')
  const port = gateway.internalPort
  const path = `/internal/v1/routes/${route.tenant_id}`
  t.equal((await send(port, { path: '/internal/v1/live' })).status, 200)
  t.equal((await send(port, { path })).status, 403)
  t.equal((await send(port, { path, headers: { 'x-tenantry-internal': 'wrong' } })).status, 403)
  const headers = { 'x-tenantry-internal': 'the-internal-token-of-this-test' }
  const shown = await send(port, { path, headers })
  t.equal(shown.status, 200)
  t.same(JSON.parse(shown.body), { ...route, leased: true })
  t.equal((await send(port, { path: '/internal/v1/routes/t_00000000000000000000', headers })).status, 404)
  t.equal((await send(port, { path: '/internal/v1/routes/../x', headers })).status, 404)
  t.equal((await send(port, { path, method: 'POST', headers })).status, 405)
})
