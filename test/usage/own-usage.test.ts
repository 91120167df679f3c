// A runtime reads its tenant's usage with the installation's token, or with the tenant's own token, which opens that tenant only.
import { tenantToken } from '@tenantry/contract'
import t from 'tap'
import { internalToken, startApi } from '#test/support/control-plane/api.ts'

t.test('a tenant’s own token opens that tenant’s usage only, and reading usage counts nothing', async (t) => {
  const api = await startApi(t)
  const [tenant, other] = [await api.create(), await api.create()]
  const request = (id: string, token: string, query = '') =>
    api.call('GET', `/internal/v1/tenants/${id}/own-usage${query}`, {
      key: null,
      headers: { 'x-tenantry-internal': token },
    })
  const before = await api.counts()
  for (const token of [internalToken, tenantToken(internalToken, tenant.tenant_id)]) {
    t.match(await request(tenant.tenant_id, token), {
      status: 200,
      body: { tenant_id: tenant.tenant_id, resources: { api_requests: { limit: 10_000 } } },
    })
    t.match(await request(tenant.tenant_id, token, '?month=2020-01'), { status: 200, body: { month: '2020-01' } })
    t.match(await request(tenant.tenant_id, token, '?month=2999-01'), { status: 400, body: { code: 'FUTURE_MONTH' } })
  }
  for (const [query, path] of [
    ['', 'usage'],
    ['?month=2020-01&granularity=day', 'usage/2020-01?granularity=day'],
  ] as const) {
    const headers = { 'x-tenantry-internal': tenantToken(internalToken, tenant.tenant_id), accept: 'text/csv' }
    const own = await api.call('GET', `/internal/v1/tenants/${tenant.tenant_id}/own-usage${query}`, {
      key: null,
      headers,
    })
    const operatorResponse = await api.call('GET', `/v1/tenants/${tenant.tenant_id}/${path}`, {
      headers: { accept: 'text/csv' },
    })
    t.match(own.headers['content-type'], /^text\/csv/)
    t.same(own.text, operatorResponse.text, 'the CSV is the one that operators get')
  }
  t.same((await request(other.tenant_id, tenantToken(internalToken, tenant.tenant_id))).status, 404)
  t.same((await request(tenant.tenant_id, 'x'.repeat(40))).status, 404)
  t.same(
    (await api.call('GET', `/internal/v1/tenants/${tenant.tenant_id}/own-usage`)).status,
    404,
    'a platform key does not open the internal path',
  )
  t.same(
    (
      await api.call('POST', '/internal/v1/usage', {
        key: null,
        headers: { 'x-tenantry-internal': tenantToken(internalToken, tenant.tenant_id) },
        body: { source: 'mine', boot: '00000000-0000-4000-8000-000000000001', counters: [] },
      })
    ).status,
    404,
    'a tenant’s token cannot push usage',
  )
  t.same(await api.counts(), before)
})
