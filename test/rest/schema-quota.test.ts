// The plan's limits of schemas: their number, and the bytes of their texts.
import t from 'tap'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'

const schema = (name: string, columns = 0) => ({
  name,
  fields: [
    { name: 'id', type: 'uuid', primary: true },
    ...Array.from({ length: columns }, (_, n) => ({ name: `column_${n}`, type: 'string' })),
  ],
  rls_policy: { type: 'service' },
})
const create = (tenant: TestTenant, body: object) => tenant.request('POST', '/rest/v1/schemas', { as: 'service', body })
const reload = (tenant: TestTenant) => tenant.request('POST', '/admin/reload-schemas', { as: 'service' })

t.test('A plan limits the number of schemas', { timeout: 60_000 }, async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant({ limits: { schemas: 2, schema_bytes: null } })
  for (const name of ['one', 'two']) t.equal((await create(tenant, schema(name))).status, 201)
  const third = await create(tenant, schema('three'))
  t.equal(third.status, 413)
  t.match(third.json(), {
    code: 'QUOTA_EXCEEDED',
    message: 'The tenant has 2 schemas. Its plan allows 2.',
    limit: 2,
    used: 2,
  })
  t.equal((await reload(tenant)).status, 200)
  t.equal(
    (await tenant.request('PATCH', '/rest/v1/schemas?name=eq.two', { as: 'service', body: { events: true } })).status,
    204,
    'a schema can be changed at the limit',
  )

  await tenant.rows(
    `insert into schemas (name, fields, rls_policy) select 'three', fields, rls_policy from schemas limit 1`,
  )
  const reloaded = await reload(tenant)
  t.equal(reloaded.status, 413, 'schemas that SQL has added count, too')
  t.match(reloaded.json(), { code: 'QUOTA_EXCEEDED', limit: 2, used: 3 })
  t.equal((await tenant.request('GET', '/rest/v1/one', { as: 'service' })).status, 200, 'collections remain served')
  t.equal((await tenant.request('DELETE', '/rest/v1/schemas?name=eq.three', { as: 'service' })).status, 204)
  t.equal((await reload(tenant)).status, 200)

  tenant.change({ limits: { ...tenant.manifest.limits, schemas: null } })
  t.equal((await create(tenant, schema('three'))).status, 201)
})

t.test('A plan limits the bytes of schemas', { timeout: 60_000 }, async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant({ limits: { schemas: null, schema_bytes: 500 } })
  t.equal((await create(tenant, schema('one'))).status, 201)
  const [size] = await tenant.rows(
    'select (octet_length(name) + octet_length(fields::text) + octet_length(rls_policy::text))::int as bytes from schemas',
  )
  const large = await create(tenant, schema('two', 20))
  t.equal(large.status, 413)
  t.match(large.json(), { code: 'QUOTA_EXCEEDED', limit: 500, used: size?.['bytes'] })
  const changed = await tenant.request('PATCH', '/rest/v1/schemas?name=eq.one', {
    as: 'service',
    body: { fields: schema('one', 20).fields },
  })
  t.equal(changed.status, 413)
  t.equal((await tenant.rows('select 1 from schemas')).length, 1)
  t.equal((await create(tenant, schema('two'))).status, 201)
})
