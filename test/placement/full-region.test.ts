// POST /v1/tenants in a region with hosts that have no memory for the tenant's own services: 507, before anything is created.
import t from 'tap'
import { until } from '#test/support/until.ts'
import { startApi } from '#test/support/control-plane/api.ts'

/** Enough for the services of one tenant with the plan Pro, and not for those of two. */
const hostBytes = 3 * 2 ** 30
const wanted = (name: string, more: object = {}) => ({ name, plan: 'Pro', region: 'cloud', ...more })

t.test('A tenant that has no room is not created, and is when there is room again', async (t) => {
  const api = await startApi(t, { cloud: { hostBytes } })
  const first = await api.create('first', { plan: 'Pro', region: 'cloud' })
  t.match(first, { status: 'ready', isolation: 'database-per-tenant' })
  const before = await api.counts()
  t.match(await api.call('POST', '/v1/tenants', { body: wanted('second') }), {
    status: 507,
    body: {
      error: 'insufficient_storage',
      code: 'REGION_FULL',
      message:
        /^No host of the region "cloud" has enough memory .* the plan Pro and the isolation database-per-tenant\.$/,
    },
  })
  t.same(await api.counts(), before, 'nothing was created')
  const shared = wanted('shared', { isolation: 'schema-per-tenant' })
  t.equal((await api.call('POST', '/v1/tenants', { body: shared })).status, 201, 'a tenant without services of its own')

  const path = `/v1/tenants/${first.tenant_id}`
  t.equal((await api.call('DELETE', `${path}?purge=true`)).status, 202)
  await until(async () => (await api.call('GET', path)).status === 404, 'the first tenant is gone')
  t.match(await api.create('second', { plan: 'Pro', region: 'cloud' }), { status: 'ready' })
})

t.test('Tenants whose services have no host yet need room, too', async (t) => {
  const api = await startApi(t, { cloud: { hostBytes }, control: false })
  t.match(await api.call('POST', '/v1/tenants', { body: wanted('first') }), {
    status: 201,
    body: { status: 'pending' },
  })
  t.match(await api.call('POST', '/v1/tenants', { body: wanted('second') }), { status: 507 })
})

t.test('A tenant that was created in advance needs no room', async (t) => {
  const api = await startApi(t, { cloud: { hostBytes }, control: false })
  t.equal((await api.call('POST', '/v1/tenants', { body: wanted('first') })).status, 201)
  t.equal((await api.call('POST', '/v1/tenants', { body: wanted('second') })).status, 507)
  await api.sql("update tenants set desired = 'warm', status = 'warm', name = 'warm-' || substr(id, 3)")
  t.equal((await api.call('POST', '/v1/tenants', { body: wanted('second') })).status, 201)
})

t.test('A draining host has no room', async (t) => {
  const api = await startApi(t, { cloud: { hostBytes: 16 * hostBytes }, control: false })
  await api.sql(
    "insert into host_states (region_id, host_id, state, is_automatic) values ('cloud', 'cloud-1', 'draining', false)",
  )
  t.match(await api.call('POST', '/v1/tenants', { body: wanted('first') }), { status: 507 })
  await api.sql('delete from host_states')
  t.match(await api.call('POST', '/v1/tenants', { body: wanted('first') }), { status: 201 })
})
