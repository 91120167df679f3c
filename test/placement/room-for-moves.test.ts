// PATCH of the isolation of a tenant in a region with several hosts, which must have memory for the services of both models.
import t from 'tap'
import { startApi } from '#test/support/control-plane/api.ts'

t.test('A tenant moves between a database and a cluster only if there is room for both', async (t) => {
  const gigabyte = 2 ** 30
  const api = await startApi(t, {
    cloud: { hosts: ['a', 'b', 'c'].map((host) => ({ id: host, bytes: 4 * gigabyte })) },
  })
  const { tenant_id: id } = await api.create('single', {
    plan: 'Free',
    region: 'cloud',
    isolation: 'database-per-tenant',
  })
  const patch = (body: object) => api.call('PATCH', `/v1/tenants/${id}`, { body })
  const size = { memory_bytes: 4 * gigabyte, cpu_millis: 1_000 }
  const resources = JSON.stringify({ postgres: size, runtime: { ...size, memory_bytes: gigabyte / 2 } })
  await api.sql('update tenants set resources = $2 where id = $1', [id, resources])
  const before = await api.counts()
  t.match(await patch({ isolation: 'cluster-per-tenant' }), {
    status: 507,
    body: { code: 'REGION_FULL', message: /the plan Free and the isolation cluster-per-tenant\.$/ },
  })
  t.same(await api.counts(), before, 'nothing has begun')
  t.match(await patch({ region: 'local', isolation: 'schema-per-tenant' }), {
    status: 422,
    body: { code: 'UNSUPPORTED_REGION', message: /^The region "cloud" has several hosts\./ },
  })
  await api.sql('update tenants set resources = null where id = $1', [id])
  t.match(await patch({ isolation: 'cluster-per-tenant' }), { status: 200, body: { operation: { kind: 'move' } } })
  t.match(
    await api.sql(
      "select move -> 'fromIsolation' as from, move -> 'toIsolation' as to from operations where kind = 'move'",
    ),
    [{ from: 'database-per-tenant', to: 'cluster-per-tenant' }],
  )
})
