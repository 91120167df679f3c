// GET /usage/v1 at a tenant's own URL: what the control plane says of that tenant, for its service role alone.
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'

t.test('own usage', { timeout: 60_000 }, async (t) => {
  const asked: { url: string; headers: Headers }[] = []
  let answer = () => new Response('{"month":"2026-11"}', { status: 200 })
  const runtime = await startRuntime(t, {
    askControl: async (url, init) => {
      asked.push({ url: url instanceof Request ? url.url : url.toString(), headers: new Headers(init?.headers) })
      return answer()
    },
  })
  const [tenant, other] = [await runtime.addTenant(), await runtime.addTenant()]
  const base = `http://control.invalid/internal/v1/tenants/${tenant.id}/own-usage`

  t.test('the service role is told of its own tenant, by month, granularity and resource', async (t) => {
    for (const [path, url] of [
      ['/usage/v1', base],
      ['/usage/v1/', base],
      ['/usage/v1/2026-05', `${base}?month=2026-05`],
      ['/usage/v1/2026-05?granularity=day&resource=egress', `${base}?granularity=day&resource=egress&month=2026-05`],
    ] as const) {
      const answered = await tenant.ask('GET', path, { as: 'service', headers: { 'x-tenantry-other': other.id } })
      t.match(
        {
          status: answered.status,
          body: answered.json(),
          url: asked.at(-1)?.url,
          cache: answered.headers['cache-control'],
        },
        { status: 200, body: { month: '2026-11' }, url, cache: 'no-store' },
        path,
      )
    }
    t.ok((asked.at(-1)?.headers.get('x-tenantry-internal') ?? '').length > 30, 'it says who asks')
  })

  t.test(
    'it is told as CSV where that is wanted, and what the control plane answers is named for what it is',
    async (t) => {
      const former = answer
      t.teardown(() => (answer = former))
      answer = () =>
        new Response('resource,amount\r\n', { status: 200, headers: { 'content-type': 'text/csv; charset=utf-8' } })
      const told = await tenant.ask('GET', '/usage/v1/2026-05?granularity=day', {
        as: 'service',
        headers: { accept: 'text/csv, application/json;q=0.5' },
      })
      t.match(
        { status: told.status, type: told.headers['content-type'], text: told.text },
        { status: 200, type: 'text/csv; charset=utf-8', text: 'resource,amount\r\n' },
      )
      t.equal(asked.at(-1)?.headers.get('accept'), 'text/csv, application/json;q=0.5')
      answer = () => new Response('<b>', { status: 200, headers: { 'content-type': 'text/html' } })
      t.equal(
        (await tenant.ask('GET', '/usage/v1/', { as: 'service' })).headers['content-type'],
        'application/json; charset=utf-8',
        'and is never a page',
      )
    },
  )

  t.test('nobody else is, and nothing is asked for them', async (t) => {
    const before = asked.length
    t.equal((await tenant.ask('GET', '/usage/v1/')).status, 401)
    t.equal((await tenant.ask('GET', '/usage/v1/', { as: 'ada' })).status, 403)
    t.ok(
      [401, 403].includes(
        (await other.ask('GET', '/usage/v1/', { headers: { authorization: `Bearer ${tenant.secretKey}` } })).status,
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
      t.equal((await tenant.ask('GET', path, { as: 'service' })).status, 400, path)
    }
    t.ok((await tenant.ask('POST', '/usage/v1/', { as: 'service', body: {} })).status >= 400, 'nothing can be written')
    t.equal(asked.length, before)
  })

  t.test(
    'what the control plane refuses is said in its words; when it is away, that is said, and nothing of it',
    async (t) => {
      answer = () => new Response('{"code":"FUTURE_MONTH","message":"month 2099-01 has not begun"}', { status: 400 })
      const refused = await tenant.ask('GET', '/usage/v1/2099-01', { as: 'service' })
      t.match({ status: refused.status, body: refused.json() }, { status: 400, body: { code: 'FUTURE_MONTH' } })
      for (const away of [
        () => new Response('secret', { status: 500 }),
        () => {
          throw new Error('secret')
        },
      ]) {
        answer = away
        const answered = await tenant.ask('GET', '/usage/v1/', { as: 'service' })
        t.match(
          { status: answered.status, body: answered.json() },
          { status: 503, body: { code: 'USAGE_UNAVAILABLE' } },
        )
        t.notOk(answered.text.includes('secret'))
        t.ok(answered.headers['retry-after'])
      }
    },
  )
})
