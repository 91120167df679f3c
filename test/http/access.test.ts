// Which keys may call which route: every route with every kind of key. A route that the table lacks is a failure.
import { readdir } from 'node:fs/promises'
import t from 'tap'
import type { Scope } from '#control-plane/keys/platform-key.ts'
import { internalToken, isError, startApi } from '#test/support/control-plane/api.ts'

const api = await startApi(t)

const allScopes = ['admin', 'read', 'billing'] as const
const [script = ''] = (await readdir(new URL('../../console/built/', import.meta.url))).filter((name) =>
  /^app-.*\.js$/.test(name),
)
/** `sign-in`: without a key, but its body must have one. */
const table: Record<string, 'public' | 'internal' | 'sign-in' | readonly Scope[]> = {
  'GET /': 'public',
  'GET /console/:file': 'public',
  'POST /v1/console-sessions': 'sign-in',
  'GET /v1/console-sessions': ['admin'],
  'GET /v1/console-sessions/current': allScopes,
  'DELETE /v1/console-sessions/current': allScopes,
  'DELETE /v1/console-sessions/:id': ['admin'],
  'GET /v1/fleet': ['admin', 'read'],
  'GET /v1/fleet/attention': ['admin', 'read'],
  'GET /v1/changes': allScopes,
  'GET /v1/prices': allScopes,
  'GET /health': 'public',
  'GET /openapi.json': 'public',
  'GET /internal/v1/live': 'public',
  'GET /internal/v1/tls/ask': 'public',
  'GET /internal/v1/watch/routes': 'internal',
  'GET /internal/v1/watch/blocked-addresses': 'internal',
  'GET /internal/v1/watch/manifests': 'internal',
  'POST /internal/v1/usage': 'internal',
  'GET /internal/v1/tenants/:id/own-usage': 'internal',
  'POST /internal/v1/leases': 'internal',
  'POST /internal/v1/sql-certificate': 'internal',
  'POST /internal/v1/tenants/:id/wake': 'internal',
  'GET /metrics': ['admin', 'read'],
  'POST /v1/tenants': ['admin'],
  'GET /v1/tenants': allScopes,
  'GET /v1/tenants/:id': allScopes,
  'PATCH /v1/tenants/:id': ['admin'],
  'DELETE /v1/tenants/:id': ['admin'],
  'POST /v1/tenants/:id/keys/rotate': ['admin'],
  'POST /v1/tenants/:id/database-password/rotate': ['admin'],
  'POST /v1/tenants/:id/service-passwords/rotate': ['admin'],
  'POST /v1/regions/:id/superuser-password/rotate': ['admin'],
  'GET /v1/regions/:id/databases': ['admin', 'read'],
  'PATCH /v1/regions/:id/databases/:database': ['admin'],
  'POST /v1/regions/:id/rebalance': ['admin'],
  'GET /v1/regions/:id/rebalances': ['admin', 'read'],
  'GET /v1/regions/:id/rebalances/:rebalance': ['admin', 'read'],
  'POST /v1/regions/:id/rebalances/:rebalance/cancel': ['admin'],
  'GET /v1/tenants/:id/jwks': ['admin', 'read'],
  'PUT /v1/tenants/:id/jwks': ['admin'],
  'POST /v1/tenants/:id/restart': ['admin'],
  'POST /v1/tenants/:id/switchover': ['admin'],
  'POST /v1/tenants/:id/move': ['admin'],
  'POST /v1/tenants/:id/move/revert': ['admin'],
  'POST /v1/tenants/:id/pause': ['admin'],
  'POST /v1/tenants/:id/wake': ['admin'],
  'POST /v1/tenants/:id/undelete': ['admin'],
  'GET /v1/tenants/:id/health': ['admin', 'read'],
  'GET /v1/tenants/:id/drift': ['admin', 'read'],
  'POST /v1/tenants/:id/drift/repair': ['admin'],
  'GET /v1/tenants/:id/logs': ['admin', 'read'],
  'GET /v1/tenants/:id/sessions': ['admin', 'read'],
  'DELETE /v1/tenants/:id/sessions/:pid': ['admin'],
  'GET /v1/tenants/:id/usage': allScopes,
  'GET /v1/tenants/:id/usage/:month': allScopes,
  'GET /v1/usage': allScopes,
  'GET /v1/usage/sources': allScopes,
  'DELETE /v1/usage/sources/:source': ['admin'],
  'GET /v1/tenants/:id/invoices': allScopes,
  'GET /v1/tenants/:id/invoices.csv': allScopes,
  'GET /v1/tenants/:id/invoices/upcoming': allScopes,
  'GET /v1/tenants/:id/invoices/upcoming.:extension': allScopes,
  'GET /v1/tenants/:id/invoices/:invoice': allScopes,
  'POST /v1/tenants/:id/invoices/close': ['admin', 'billing'],
  'POST /v1/tenants/:id/invoices/:invoice/void': ['admin', 'billing'],
  'GET /v1/tenants/:id/adjustments': allScopes,
  'POST /v1/tenants/:id/adjustments': ['admin', 'billing'],
  'DELETE /v1/tenants/:id/adjustments/:adjustment': ['admin', 'billing'],
  'GET /v1/tenants/:id/buyer': allScopes,
  'PUT /v1/tenants/:id/buyer': ['admin', 'billing'],
  'GET /v1/tenants/:id/spending-limit': allScopes,
  'PUT /v1/tenants/:id/spending-limit': ['admin', 'billing'],
  'DELETE /v1/tenants/:id/spending-limit': ['admin', 'billing'],
  'GET /v1/operations': ['admin', 'read'],
  'GET /v1/operations/:id': ['admin', 'read'],
  'POST /v1/operations/:id/cancel': ['admin'],
  'POST /v1/rollouts': ['admin'],
  'GET /v1/rollouts': ['admin', 'read'],
  'GET /v1/rollouts/:id': ['admin', 'read'],
  'POST /v1/rollouts/:id/cancel': ['admin'],
  'POST /v1/tenants/:id/backups': ['admin'],
  'GET /v1/tenants/:id/backups': ['admin', 'read'],
  'GET /v1/backups': ['admin', 'read'],
  'GET /v1/backups/:id': ['admin', 'read'],
  'POST /v1/backups/:id/adopt': ['admin'],
  'GET /v1/tenants/:id/recovery': ['admin', 'read'],
  'POST /v1/tenants/:id/restore': ['admin'],
  'DELETE /v1/backups/:id': ['admin'],
  'POST /v1/backups/:id/restore': ['admin'],
  'POST /v1/backups/:id/verify': ['admin'],
  'GET /v1/plans': allScopes,
  'GET /v1/regions': allScopes,
  'GET /v1/hosts': ['admin', 'read'],
  'GET /v1/hosts/:id': ['admin', 'read'],
  'GET /v1/regions/:id/hosts': ['admin', 'read'],
  'POST /v1/regions/:id/hosts/:host/drain': ['admin'],
  'POST /v1/regions/:id/hosts/:host/lost': ['admin'],
  'POST /v1/regions/:id/hosts/:host/activate': ['admin'],
  'GET /v1/keys': ['admin'],
  'POST /v1/keys': ['admin'],
  'DELETE /v1/keys/:id': ['admin'],
  'POST /v1/keys/:id/rotate': ['admin'],
  'GET /v1/certificate-authority.pem': 'public',
  'GET /v1/blocked-addresses': ['admin', 'read'],
  'GET /v1/blocked-addresses/:address': ['admin', 'read'],
  'PUT /v1/blocked-addresses/:address': ['admin'],
  'DELETE /v1/blocked-addresses/:address': ['admin'],
  'POST /v1/webhooks': ['admin'],
  'GET /v1/webhooks': ['admin', 'read'],
  'GET /v1/webhooks/:id': ['admin', 'read'],
  'PATCH /v1/webhooks/:id': ['admin'],
  'DELETE /v1/webhooks/:id': ['admin'],
  'POST /v1/webhooks/:id/rotate': ['admin'],
  'GET /v1/webhooks/:id/deliveries': ['admin', 'read'],
  'POST /v1/webhooks/:id/replay': ['admin'],
  'POST /v1/webhooks/:id/deliveries/:delivery/replay': ['admin'],
  'GET /v1/audit': ['admin'],
  'GET /v1/audit/verify': ['admin'],
}
/** Fastify serves HEAD wherever it serves GET. */
const withHead = Object.entries(table).flatMap(([route, access]) =>
  route.startsWith('GET ')
    ? [[route, access] as const, [route.replace('GET ', 'HEAD '), access] as const]
    : [[route, access] as const],
)

/** IDs that do not exist, so that an admitted call creates nothing. */
const pathOf = (url: string) =>
  url
    .replace(':id', 't_00000000000000000000')
    .replace(':month', '2026-01')
    .replace(':file', script)
    // An admitted call would not end.
    .replace(/changes$/, 'changes?nothing=true')
    .replace('/tls/ask', '/tls/ask?domain=localhost')

t.test('The table has every route, and no other', (t) => {
  t.same(api.routes.map(({ method, url }) => `${method} ${url}`).sort(), withHead.map(([route]) => route).sort())
  t.end()
})

t.test('Every route is open to its scopes, and to no others', async (t) => {
  const revoked = await api.newKey('admin')
  await api.call('DELETE', `/v1/keys/${revoked.id}`)
  const expired = await api.newKey('admin')
  t.same((await api.call('POST', `/v1/keys/${expired.id}/rotate`, { body: { overlap_seconds: 0 } })).status, 201)
  const before = await api.counts()
  for (const [route, access] of withHead) {
    const [method = '', url = ''] = route.split(' ')
    const call = (key: string | null, headers: Record<string, string> = {}) =>
      api.call(method, pathOf(url), {
        key,
        headers,
        ...(method === 'POST' || method === 'PATCH' ? { body: { nothing: true } } : {}),
      })
    // A response to HEAD has no body to check.
    const denied = async (
      key: string | null,
      status: number,
      code: string,
      names: string,
      headers: Record<string, string> = {},
    ) => {
      const response = await call(key, headers)
      if (method === 'HEAD') t.same(response.status, status, `${route} ${code}`)
      else isError(t, response, status, code, names, route)
      return response
    }
    if (access === 'sign-in') {
      for (const key of [null, api.keys.billing, revoked.key])
        isError(t, await call(key), 400, 'MISSING_FIELD', 'platform_key', `${route} needs a key in its body`)
    } else if (access === 'public') {
      for (const key of [null, api.keys.billing, revoked.key]) t.same((await call(key)).status, 200, `${route} is open`)
    } else if (access === 'internal') {
      for (const key of [null, api.keys.admin, internalToken])
        await denied(key, 404, 'NOT_FOUND', 'nothing at this address')
      for (const token of ['', 'x'.repeat(internalToken.length), `${internalToken}x`]) {
        await denied(null, 404, 'NOT_FOUND', 'nothing at this address', { 'x-tenantry-internal': token })
      }
    } else {
      const anonymous = await denied(null, 401, 'MISSING_KEY', 'Authorization')
      t.same(anonymous.headers['www-authenticate'], 'Bearer')
      await denied(null, 401, 'MISSING_KEY', 'Authorization', { 'x-tenantry-internal': internalToken })
      await denied(`${api.keys.admin}x`, 401, 'INVALID_KEY', 'unknown')
      await denied('', 401, 'INVALID_KEY', 'unknown')
      await denied(null, 401, 'INVALID_KEY', 'unknown', { authorization: `Basic ${api.keys.admin}` })
      await denied(revoked.key, 401, 'REVOKED_KEY', 'revoked')
      await denied(expired.key, 401, 'REVOKED_KEY', 'expired')
      for (const scope of allScopes) {
        if (access.includes(scope))
          t.notOk([401, 403, 500].includes((await call(api.keys[scope])).status), `${route} is open to ${scope}`)
        else await denied(api.keys[scope], 403, 'WRONG_SCOPE', access.join(' or '))
      }
    }
  }
  t.same(await api.counts(), before, 'nothing was created')
})

t.test('The documentation is open, and names every route for keys and no other', async (t) => {
  t.same((await api.call('GET', '/docs/', { key: null })).status, 200)
  const { paths } = (await api.call('GET', '/openapi.json', { key: null })).body as { paths: Record<string, object> }
  const documented = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`),
  )
  t.same(
    documented.sort(),
    Object.keys(table)
      .filter((route) => / \/(v1\/|health$)/.test(route))
      .sort(),
  )
})

t.test('Every response forbids sniffing and storing', async (t) => {
  for (const path of ['/v1/tenants', '/v1/nothing', '/health', '/metrics']) {
    t.match(
      (await api.call('GET', path)).headers,
      { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' },
      path,
    )
  }
})

t.test('Without its database the API lives, reports that it is unhealthy, and admits no caller', async (t) => {
  await api.postgres.stop()
  t.match(await api.call('GET', '/health'), { status: 503, body: { status: 'unhealthy', observed_at: String } })
  t.match(await api.call('GET', '/internal/v1/live'), { status: 200, body: { status: 'live' } })
  const response = await api.call('GET', '/v1/tenants')
  isError(t, response, 503, 'UNAVAILABLE', 'database', 'a list')
  t.same(response.headers['retry-after'], '1')
  t.notMatch(response.text, String(api.postgres.port), 'the response does not contain the address')
})
