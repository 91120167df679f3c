// GET /usage/v1 at a tenant's own URL: the usage that the control plane reports for that tenant, for its service role
// only.
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'

t.test('Own usage', { timeout: 60_000 }, async (t) => {
  const requests: { url: string; headers: Headers }[] = []
  let response = () => new Response('{"month":"2026-11"}', { status: 200 })
  const runtime = await startRuntime(t, {
    requestControl: async (url, init) => {
      requests.push({ url: url instanceof Request ? url.url : url.toString(), headers: new Headers(init?.headers) })
      return response()
    },
  })
  const [tenant, other] = [await runtime.addTenant(), await runtime.addTenant()]
  const base = `http://control.invalid/internal/v1/tenants/${tenant.id}/own-usage`

  t.test('The service role receives the usage of its own tenant, by month, granularity and resource', async (t) => {
    for (const [path, url] of [
      ['/usage/v1', base],
      ['/usage/v1/', base],
      ['/usage/v1/2026-05', `${base}?month=2026-05`],
      ['/usage/v1/2026-05?granularity=day&resource=egress', `${base}?granularity=day&resource=egress&month=2026-05`],
    ] as const) {
      const result = await tenant.request('GET', path, { as: 'service', headers: { 'x-tenantry-other': other.id } })
      t.match(
        {
          status: result.status,
          body: result.json(),
          url: requests.at(-1)?.url,
          cache: result.headers['cache-control'],
        },
        { status: 200, body: { month: '2026-11' }, url, cache: 'no-store' },
        path,
      )
    }
    t.ok((requests.at(-1)?.headers.get('x-tenantry-internal') ?? '').length > 30, 'the request is authenticated')
  })

  t.test('Usage is returned as CSV on request, and the content type is checked', async (t) => {
    const former = response
    t.teardown(() => (response = former))
    response = () =>
      new Response('resource,amount\r\n', { status: 200, headers: { 'content-type': 'text/csv; charset=utf-8' } })
    const reported = await tenant.request('GET', '/usage/v1/2026-05?granularity=day', {
      as: 'service',
      headers: { accept: 'text/csv, application/json;q=0.5' },
    })
    t.match(
      { status: reported.status, type: reported.headers['content-type'], text: reported.text },
      { status: 200, type: 'text/csv; charset=utf-8', text: 'resource,amount\r\n' },
    )
    t.equal(requests.at(-1)?.headers.get('accept'), 'text/csv, application/json;q=0.5')
    response = () => new Response('<b>', { status: 200, headers: { 'content-type': 'text/html' } })
    t.equal(
      (await tenant.request('GET', '/usage/v1/', { as: 'service' })).headers['content-type'],
      'application/json; charset=utf-8',
      'and is never a page',
    )
  })

  t.test('Other callers are rejected without a request to the control plane', async (t) => {
    const before = requests.length
    t.equal((await tenant.request('GET', '/usage/v1/')).status, 401)
    t.equal((await tenant.request('GET', '/usage/v1/', { as: 'ada' })).status, 403)
    t.ok(
      [401, 403].includes(
        (await other.request('GET', '/usage/v1/', { headers: { authorization: `Bearer ${tenant.secretKey}` } })).status,
      ),
    )
    for (const path of [
      '/usage/v1/?month=2026-05',
      '/usage/v1/?tenant=x',
      '/usage/v1/2026',
      '/usage/v1/..%2f..%2ftenants',
      '/usage/v1/?resource=a%26month%3D2026-01',
      '/usage/v1/?resource=a&resource=b',
    ]) {
      t.equal((await tenant.request('GET', path, { as: 'service' })).status, 400, path)
    }
    t.ok(
      (await tenant.request('POST', '/usage/v1/', { as: 'service', body: {} })).status >= 400,
      'nothing can be written',
    )
    t.equal(requests.length, before)
  })

  t.test('An error of the control plane is forwarded; an outage is a 503 that discloses nothing', async (t) => {
    response = () => new Response('{"code":"FUTURE_MONTH","message":"month 2099-01 has not begun"}', { status: 400 })
    const rejected = await tenant.request('GET', '/usage/v1/2099-01', { as: 'service' })
    t.match({ status: rejected.status, body: rejected.json() }, { status: 400, body: { code: 'FUTURE_MONTH' } })
    for (const away of [
      () => new Response('secret', { status: 500 }),
      () => {
        throw new Error('secret')
      },
    ]) {
      response = away
      const result = await tenant.request('GET', '/usage/v1/', { as: 'service' })
      t.match({ status: result.status, body: result.json() }, { status: 503, body: { code: 'USAGE_UNAVAILABLE' } })
      t.notOk(result.text.includes('secret'))
      t.ok(result.headers['retry-after'])
    }
  })
})
