// The API changes a tenant for one writer at a time, deletes it in two phases, and rotates its keys.
import { createHash } from 'node:crypto'
import t from 'tap'
import type { OperationBody } from '#control-plane/tenants/tenant-body.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { isError, newName, startApi, type CreatedTenant } from '#test/support/control-plane/api.ts'
import { changed, newTenantBody, rolesAndSchemas } from './support/tenants.ts'

const api = await startApi(t)

/** Whether gateways have the tenant's deletion, and the reconciler has nothing to do until the end of the grace period. */
const isUnrouted = async (id: string) => {
  const [entry] = await api.published.some(new Set([id]))
  const { generation, observed_generation: observed } = await api.tenant(id)
  return entry?.route.phase === 'deleted' && observed === generation
}

t.test('each change of name, plan or suspension increments the generation, and is observed', async (t) => {
  const tenant = await api.create()
  const id = tenant.tenant_id
  const wait = { prefer: 'wait=30' }
  const patch = async (body: object, headers: Record<string, string> = wait) =>
    api.call('PATCH', `/v1/tenants/${id}`, { body, headers })
  const name = newName('renamed')
  t.match(await patch({ name }), {
    status: 200,
    headers: { etag: '"2"' },
    body: {
      name,
      url: `http://${name}.localhost:4401`,
      generation: 2,
      observed_generation: 2,
      status: 'ready',
      operation: { kind: 'update', state: 'succeeded' },
    },
  })
  t.match(await patch({ plan: 'Pro' }), {
    status: 200,
    body: { plan: 'Pro', isolation: 'schema-per-tenant', generation: 3, status: 'ready' },
  })
  t.match(await patch({ suspended: true }), {
    status: 200,
    body: { generation: 4, observed_generation: 4, status: 'suspended' },
  })
  t.match(await api.published.some(new Set([id])), [
    { route: { phase: 'suspended', name }, manifest: { limits: { requests_per_month: 1_000_000 } } },
  ])
  t.match(await patch({ suspended: false, plan: 'Free' }), {
    status: 200,
    body: { plan: 'Free', generation: 5, status: 'ready' },
  })
  t.match(await api.tenant(id), { tenant_id: id, name, plan: 'Free', created_at: tenant.created_at, generation: 5 })
  t.same(
    (await api.call('POST', '/v1/tenants', { body: newTenantBody(tenant.name) })).status,
    201,
    'the old name is free',
  )
})

t.test('of two writers with the same ETag, one is rejected', async (t) => {
  const { tenant_id: id } = await api.create()
  const seen = await api.call('GET', `/v1/tenants/${id}`)
  t.same(seen.headers['etag'], '"1"')
  const headers = { 'if-match': '"1"', prefer: 'wait=30' }
  const responses = await Promise.all(
    ['Pro', 'Enterprise'].map((plan) => api.call('PATCH', `/v1/tenants/${id}`, { body: { plan }, headers })),
  )
  t.same(responses.map(({ status }) => status).sort(), [200, 412])
  const lost = responses.find(({ status }) => status === 412)
  if (lost === undefined) throw new Error('no writer was rejected')
  isError(t, lost, 412, 'STALE_ETAG', 'generation 1', 'the later writer')
  const now = await api.call('GET', `/v1/tenants/${id}`)
  t.same(now.headers['etag'], '"2"')
  isError(
    t,
    await api.call('DELETE', `/v1/tenants/${id}`, { headers }),
    412,
    'STALE_ETAG',
    'generation 1',
    'a stale delete',
  )
  const patch = (plan: string, tag: string) =>
    api.call('PATCH', `/v1/tenants/${id}`, { body: { plan }, headers: { ...headers, 'if-match': tag } })
  t.match(await patch('Free', '"2"'), { status: 200, headers: { etag: '"3"' } })
  t.match(await patch('Pro', '*'), { status: 200, body: { generation: 4 } })
})

t.test('during an operation another is rejected with the operation’s ID, and a delete supersedes it', async (t) => {
  const { tenant_id: id } = await api.create()
  api.region.agrees = false
  const first = changed(await api.call('PATCH', `/v1/tenants/${id}`, { body: { plan: 'Pro' } }))
  for (const [method, path, body] of [
    ['PATCH', '', { plan: 'Free' }],
    ['POST', '/keys/rotate', {}],
  ] as const) {
    const rejected = await api.call(method, `/v1/tenants/${id}${path}`, { body })
    isError(t, rejected, 423, 'OPERATION_IN_PROGRESS', first.operation.id, method)
    t.match(rejected, { headers: { 'retry-after': '1' }, body: { operation_id: first.operation.id } })
  }
  t.same((await api.tenant(id)).plan, 'Pro')
  const deleted = await api.call('DELETE', `/v1/tenants/${id}`)
  t.match(deleted, { status: 202, body: { operation: { kind: 'delete' } } })
  t.match((await api.call('GET', `/v1/operations/${first.operation.id}`)).body, {
    state: 'superseded',
    finished: String,
  })
  for (const [method, path, body] of [
    ['PATCH', '', { plan: 'Free' }],
    ['POST', '/keys/rotate', {}],
  ] as const) {
    isError(
      t,
      await api.call(method, `/v1/tenants/${id}${path}`, { body }),
      409,
      'TENANT_DELETED',
      'being deleted',
      `${method} of a deleted tenant`,
    )
  }
  api.region.agrees = true
})

t.test('a deleted tenant is retained for its grace period, then removed completely', async (t) => {
  const tenant = await api.create()
  const id = tenant.tenant_id
  const deleted = await api.call('DELETE', `/v1/tenants/${id}`)
  t.match(deleted, { status: 202, body: { purge_after: String, operation: { kind: 'delete' } } })
  const due = new Date(changed(deleted).purge_after ?? 0)
  t.same((await api.tenant(id)).status, 'deleting', 'the status changes at once')
  await until(() => isUnrouted(id), 'the first phase')
  t.same((await rolesAndSchemas(api, id)).roles.length, 5, 'its roles stay')
  const [data] = await query(
    api.postgres.url('tenantry_homes_1'),
    `select count(*)::int as count from "${id}".storage_buckets`,
  )
  t.same(Number.isInteger(data?.['count']), true, 'its data is retained')
  await t.rejects(query(tenant.database_url, 'select 1'), { code: '28000' }, 'its SQL login is closed')
  isError(
    t,
    await api.call('POST', '/v1/tenants', { body: newTenantBody(tenant.name) }),
    409,
    'NAME_TAKEN',
    tenant.name,
    'its name stays taken',
  )
  const again = changed(await api.call('DELETE', `/v1/tenants/${id}`))
  t.same(again.purge_after, due.toISOString(), 'a repeated delete does not extend the grace period')

  api.clock.ahead = due.getTime() - Date.now() + 1000
  await until(async () => (await api.call('GET', `/v1/tenants/${id}`)).status === 404, 'the second phase')
  api.clock.ahead = 0
  isError(t, await api.call('GET', `/v1/tenants/${id}`), 404, 'TENANT_NOT_FOUND', 'tenant', 'the removed tenant')
  t.same(await rolesAndSchemas(api, id), { roles: [], schemas: [] })
  t.ok(api.region.removed.includes(id), 'its files are removed')
  t.same(await api.published.some(new Set([id])), [])
  t.same(await api.sql('select 1 from tenant_secrets where tenant_id = $1', [id]), [], 'its secrets are removed')
  await t.rejects(query(tenant.database_url, 'select 1'), { code: /^28/ }, 'its login is removed')
  const { operations } = (await api.call('GET', `/v1/operations?tenant_id=${id}`)).body as {
    operations: OperationBody[]
  }
  t.same(
    operations.map(({ kind, state }) => `${kind} ${state}`),
    ['create succeeded', 'delete superseded', 'delete succeeded'],
  )
  const next = await api.create(tenant.name)
  t.not(next.tenant_id, id, 'the name is free for another tenant')
})

t.test('an observation from before a delete does not overwrite its status', async (t) => {
  const { tenant_id: id } = await api.create()
  api.region.agrees = false
  await api.call('DELETE', `/v1/tenants/${id}`)
  const epoch = BigInt(String((await api.sql('select epoch from installation'))[0]?.['epoch']))
  // A reconciliation whose snapshot is older than the delete records this.
  await api.reconcileStore.recordObserved(
    id,
    { generation: 1, status: 'ready', reason: null, conditions: [], operation: undefined },
    epoch,
  )
  t.match(await api.tenant(id), { status: 'deleting', generation: 2, observed_generation: 1 })
  api.region.agrees = true
  await until(() => isUnrouted(id), 'the first phase')
  t.same((await api.tenant(id)).status, 'deleting')
})

t.test('?purge=true deletes a tenant at once, also during its grace period', async (t) => {
  for (const graceFirst of [false, true]) {
    const { tenant_id: id } = await api.create()
    if (graceFirst) {
      await api.call('DELETE', `/v1/tenants/${id}?purge=false`)
      await until(() => isUnrouted(id), 'the first phase')
    }
    const purged = await api.call('DELETE', `/v1/tenants/${id}?purge=true`, { headers: { prefer: 'wait=30' } })
    t.match(purged, { status: 202, body: { tenant_id: id, operation: { kind: 'delete', state: 'succeeded' } } })
    t.same((await api.call('GET', `/v1/tenants/${id}`)).status, 404)
    t.same(await rolesAndSchemas(api, id), { roles: [], schemas: [] })
    isError(
      t,
      await api.call('DELETE', `/v1/tenants/${id}?purge=true`),
      404,
      'TENANT_NOT_FOUND',
      'tenant',
      'a second purge',
    )
  }
})

t.test('new API keys work alongside the old ones, which end after the overlap', async (t) => {
  const tenant = await api.create()
  const id = tenant.tenant_id
  const headers = { prefer: 'wait=30', 'idempotency-key': newName('key') }
  const rotate = () => api.call('POST', `/v1/tenants/${id}/keys/rotate`, { body: { overlap_seconds: 60 }, headers })
  const first = await rotate()
  t.match(first, { status: 200, body: { tenant_id: id, operation: { kind: 'rotate_keys', state: 'succeeded' } } })
  t.match(await rotate(), { headers: { 'idempotency-replayed': 'true' }, body: first.body as object })
  const { keys } = first.body as { keys: CreatedTenant['keys'] }
  const hash = (text: string) => createHash('sha256').update(text).digest('hex')
  const live = async () => {
    const { manifest } = (await api.published.some(new Set([id])))[0] ?? {}
    return { keys: manifest?.keys.map(({ sha256 }) => sha256).sort(), jwt_secrets: manifest?.jwt_secrets }
  }
  const hashes = (...sets: CreatedTenant['keys'][]) =>
    sets.flatMap((set) => [hash(set.publishable_key), hash(set.secret_key)]).sort()
  t.same(
    await live(),
    { keys: hashes(keys, tenant.keys), jwt_secrets: [keys.jwt_secret, tenant.keys.jwt_secret] },
    'both sets of keys, the newest first',
  )
  api.clock.ahead = 61_000
  t.same(await live(), { keys: hashes(keys), jwt_secrets: [keys.jwt_secret] }, 'the old keys have ended')
  await until(
    async () => (await api.sql('select 1 from tenant_secrets where tenant_id = $1', [id])).length === 7,
    'their removal',
  )
  api.clock.ahead = 0
})

t.test('selected kinds are rotated, and each kind has at most five valid secrets', async (t) => {
  const { tenant_id: id, keys } = await api.create()
  const rotate = (body: object) =>
    api.call('POST', `/v1/tenants/${id}/keys/rotate`, { body, headers: { prefer: 'wait=30' } })
  const manifest = async () => (await api.published.some(new Set([id])))[0]?.manifest
  const before = await manifest()
  const first = await rotate({ kinds: ['signing_secret'], overlap_seconds: 60 })
  t.match(first, { status: 200, body: { keys: {}, operation: { state: 'succeeded' } } })
  t.same((first.body as { keys: object }).keys, {}, 'no response contains the secret of signed URLs')
  const after = await manifest()
  t.match(after, { jwt_secrets: [keys.jwt_secret], keys: before?.keys }, 'all others stay')
  t.match(after?.former_signing_secrets, [{ secret: before?.signing_secret, expires_at: String }])
  t.not(after?.signing_secret, before?.signing_secret)
  t.notMatch(first.text, after?.signing_secret ?? '')

  const jwt = { kinds: ['jwt_secret'], overlap_seconds: 60 }
  for (let n = 0; n < 4; n++) {
    const { body } = await rotate(jwt)
    t.same(Object.keys((body as { keys: object }).keys), ['jwt_secret'])
  }
  isError(t, await rotate(jwt), 409, 'TOO_MANY_SECRETS', 'jwt_secret', 'a sixth secret')
  t.equal((await manifest())?.jwt_secrets.length, 5)
  t.equal((await rotate({ ...jwt, overlap_seconds: 0 })).status, 200, 'without an overlap')
  t.equal((await manifest())?.jwt_secrets.length, 1)
  for (const kinds of [[], ['admin_password'], ['jwt_secret', 'jwt_secret'], 'jwt_secret'])
    isError(t, await rotate({ kinds }), 400, 'INVALID_FIELD', 'kinds', JSON.stringify(kinds))
})

t.test('no call failed with an internal error', (t) => {
  t.same(
    api.log.filter((line) => line.includes('The request failed.')),
    [],
  )
  t.end()
})
