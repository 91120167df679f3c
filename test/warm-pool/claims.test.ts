// Tenants created in advance: hidden from callers, and claimed by a create with the keys that were created with them, once
// each.
import { randomBytes } from 'node:crypto'
import { internalPaths, internalTokenHeader } from '@tenantry/contract'
import t from 'tap'
import type { TenantBody } from '#control-plane/tenants/tenant-body.ts'
import { openDatabase } from '#control-plane/platform/database.ts'
import { createWarmPoolStore } from '#control-plane/warm-pool/store.ts'
import { warmName } from '#control-plane/tenants/names.ts'
import { newSecrets } from '#control-plane/tenants/new-secrets.ts'
import { until } from '#test/support/until.ts'
import { internalToken, isError, newName, startApi, type CreatedTenant } from '#test/support/control-plane/api.ts'

const api = await startApi(t, { cloud: true })
const database = openDatabase(api.controlUrl)
t.teardown(() => database.$disconnect())
const store = createWarmPoolStore(database, api.seal, () => new Date())
const epoch = async () => BigInt(String((await api.sql('select epoch from installation'))[0]?.['epoch']))
const secrets = new Map<string, ReturnType<typeof newSecrets>>()

/** @returns the ID of a tenant that is warm, with all that a tenant has */
async function makeWarm(): Promise<string> {
  const id = `t_${randomBytes(10).toString('hex')}`
  const made = newSecrets()
  secrets.set(id, made)
  await until(async () => (await epoch()) > 0n, 'a leader')
  await store.addWarm(
    { id, name: warmName(id), plan: 'Pro', region: 'cloud', isolation: 'database-per-tenant', secrets: made },
    await epoch(),
  )
  await until(
    async () => (await api.sql('select status from tenants where id = $1', [id]))[0]?.['status'] === 'warm',
    'a warm tenant',
  )
  return id
}

const ids = async (query = '') =>
  ((await api.call('GET', `/v1/tenants?${query}`)).body as { tenants: TenantBody[] }).tenants.map(
    ({ tenant_id }) => tenant_id,
  )
const create = (plan = 'Pro', headers: Record<string, string> = {}, name = newName()) =>
  api.call('POST', '/v1/tenants', { body: { name, plan, region: 'cloud' }, headers })

t.test('A warm tenant is not shown, and no call changes it', async (t) => {
  const id = await makeWarm()
  t.notOk((await ids()).includes(id))
  t.same((await api.call('GET', `/v1/operations?tenant_id=${id}`)).body, { operations: [], next_cursor: null })
  const before = await api.counts()
  for (const [method, part, body] of [
    ['GET', ''],
    ['GET', '/health'],
    ['GET', '/drift'],
    ['GET', '/usage'],
    ['GET', '/logs?component=runtime'],
    ['PATCH', '', { plan: 'Free' }],
    ['DELETE', ''],
    ['POST', '/keys/rotate', {}],
    ['POST', '/restart', {}],
    ['POST', '/pause', {}],
    ['POST', '/wake', {}],
  ] as const) {
    const response = await api.call(method, `/v1/tenants/${id}${part}`, body === undefined ? {} : { body })
    isError(t, response, 404, 'TENANT_NOT_FOUND', 'tenant', `${method} ${part}`)
  }
  isError(
    t,
    await api.call('POST', internalPaths.wake(id), { key: null, headers: { [internalTokenHeader]: internalToken } }),
    404,
    'TENANT_NOT_FOUND',
    'tenant',
    'a wake',
  )
  t.same(await api.counts(), before)
  for (const name of [warmName(id), warmName('t_00000000000000000000')])
    isError(t, await create('Pro', {}, name), 400, 'RESERVED_NAME', name, name)
  t.same((await create('Free', {}, `warm-${newName('beer')}`)).status, 201, 'other names of the kind are free')

  t.ok(await store.removeWarm(id, await epoch()))
  t.notOk((await ids()).includes(id), 'nor while it is removed')
  await until(async () => (await api.sql('select 1 from tenants where id = $1', [id])).length === 0, 'its end')
})

t.test('A create claims a warm tenant with its keys, and returns it as new', async (t) => {
  const id = await makeWarm()
  const begun = Date.now()
  const headers = { prefer: 'wait=30', 'idempotency-key': newName('key') }
  const name = newName()
  const response = await create('Enterprise', headers, name)
  const tenant = response.body as CreatedTenant
  const made = secrets.get(id)
  t.match(response, { status: 201, headers: { location: `/v1/tenants/${id}`, etag: '"2"' } })
  t.match(tenant, {
    tenant_id: id,
    name,
    plan: 'Enterprise',
    isolation: 'database-per-tenant',
    status: 'ready',
    generation: 2,
    observed_generation: 2,
    resources: { postgres: { memory_bytes: 4 * 2 ** 30 } },
    keys: { publishable_key: made?.publishable_key, secret_key: made?.secret_key, jwt_secret: made?.jwt_secret },
    operation: { tenant_id: id, kind: 'create', state: 'succeeded' },
  })
  t.same(new URL(tenant.database_url).password, made?.admin_password)
  t.ok(Date.parse(tenant.created_at) >= begun - 1, 'its age is that of the create')
  t.match(await create('Enterprise', headers, name), { headers: { 'idempotency-replayed': 'true' }, body: tenant })
  t.ok((await ids(`name_prefix=${name}`)).includes(id))
  t.match(await api.published.some(new Set([id])), [
    { route: { name, phase: 'ready' }, manifest: { name, generation: 2 } },
  ])
  t.match((await api.call('GET', '/v1/audit?limit=1')).body, {
    entries: [{ action: 'tenant.create', target: id, detail: { name, plan: 'Enterprise' } }],
  })
})

t.test('Two creates at once never claim the same tenant, and a further one creates its own', async (t) => {
  const warm = [await makeWarm(), await makeWarm()]
  const responses = await Promise.all([create(), create(), create()])
  const claimed = responses.map(({ body }) => (body as TenantBody).tenant_id)
  t.same(
    responses.map(({ status }) => status),
    [201, 201, 201],
  )
  t.same(new Set(claimed).size, 3)
  t.same(
    warm.filter((id) => !claimed.includes(id)),
    [],
    'both warm tenants were claimed',
  )
  for (const { body } of responses) t.not((body as TenantBody).status, 'warm')
})

t.test('A rejected create claims nothing, and one of another isolation skips the warm tenant', async (t) => {
  const id = await makeWarm()
  const taken = await api.create()
  isError(t, await create('Pro', {}, taken.name), 409, 'NAME_TAKEN', taken.name, 'a name that is taken')
  const shared = await api.call('POST', '/v1/tenants', {
    body: { name: newName(), plan: 'Pro', region: 'cloud', isolation: 'schema-per-tenant' },
  })
  t.not((shared.body as TenantBody).tenant_id, id)
  t.not((await api.create()).tenant_id, id, 'a tenant of another region')
  t.match(await api.sql('select desired, status, generation from tenants where id = $1', [id]), [
    { desired: 'warm', status: 'warm', generation: 1 },
  ])
  t.same(((await create()).body as TenantBody).tenant_id, id, 'the warm tenant is there for the next create')
})

t.test('An earlier observation of the reconciler does not make a claimed tenant warm again', async (t) => {
  const id = await makeWarm()
  api.region.agrees = false
  const tenant = (await create()).body as TenantBody
  t.same(tenant.tenant_id, id)
  await api.reconcileStore.recordObserved(
    id,
    { generation: 1, status: 'warm', reason: null, conditions: [], operation: undefined },
    await epoch(),
  )
  t.match(await api.tenant(id), { status: 'pending', generation: 2 })
  api.region.agrees = true
  await until(async () => (await api.tenant(id)).status === 'ready', 'readiness')
})
