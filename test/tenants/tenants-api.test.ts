// A tenant's life through the API: created once, read without secrets, changed by one writer at a time, deleted in two steps.
import { createHash } from 'node:crypto'
import t from 'tap'
import type { OperationBody, TenantBody } from '#control-plane/tenants/tenant-body.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { isError, newName, startApi, type Answer, type CreatedTenant } from '#test/support/control-plane/api.ts'

const api = await startApi(t)

type Changed = TenantBody & { operation: OperationBody }

const good = (name = newName()) => ({ name, plan: 'Free', region: 'local' })
const changed = ({ body }: Answer) => body as Changed
const homesUrl = api.postgres.url('tenantry_homes_1')
const rolesAndSchemas = async (id: string) => ({
  roles: (await api.sql('select rolname from pg_roles where rolname like $1 order by 1', [`${id}%`])).map(
    ({ rolname }) => rolname,
  ),
  schemas: (await query(homesUrl, 'select nspname from pg_namespace where nspname like $1', [`${id}%`])).map(
    ({ nspname }) => nspname,
  ),
})
/** Gateways are told that it is gone, and the reconciler has nothing left to do before the grace time's end. */
const isUnrouted = async (id: string) => {
  const [entry] = await api.published.some(new Set([id]))
  const { generation, observed_generation: observed } = await api.tenant(id)
  return entry?.route.phase === 'deleted' && observed === generation
}

t.test('a created tenant is ready, whole, and entered with what the answer gave', async (t) => {
  const name = newName()
  const answer = await api.call('POST', '/v1/tenants', { body: good(name), headers: { prefer: 'wait=30' } })
  const tenant = answer.body as CreatedTenant
  const id = tenant.tenant_id
  t.same(answer.status, 201)
  t.match(answer.headers, { location: `/v1/tenants/${id}`, etag: '"1"' })
  t.match(tenant, {
    tenant_id: /^t_[0-9a-f]{20}$/,
    name,
    plan: 'Free',
    region: 'local',
    isolation: 'schema-per-tenant',
    status: 'ready',
    reason: null,
    url: `http://${name}.localhost:4401`,
    path_url: `http://127.0.0.1:4401/t/${name}`,
    generation: 1,
    observed_generation: 1,
    purge_after: null,
    operation: { tenant_id: id, kind: 'create', state: 'succeeded', step: 'done', error: null, attempts: 1 },
  })
  t.same(
    tenant.conditions.map(({ type, status }) => `${type} ${status}`),
    ['Home True', 'Database True', 'Runtime True', 'Route True'],
  )
  t.same(await rolesAndSchemas(id), {
    roles: [id, `${id}_admin`, `${id}_ddl`, `${id}_owner`, `${id}_system`],
    schemas: [id],
  })
  const row = await query(
    tenant.database_url,
    'select current_user as role, current_schema() as schema, count(*)::int as schemas from schemas',
  )
  t.same(row, [{ role: `${id}_owner`, schema: id, schemas: 0 }], 'database_url is a login of the tenant')
  t.same((await api.call('GET', `/v1/operations/${tenant.operation.id}`)).body, tenant.operation)
})

t.test('secrets are in the answer that creates, and nowhere else in the clear', async (t) => {
  const tenant = await api.create()
  const headers = { prefer: 'wait=30', 'idempotency-key': newName() }
  const rotated = await api.call('POST', `/v1/tenants/${tenant.tenant_id}/keys/rotate`, { body: {}, headers })
  const { keys } = rotated.body as { keys: CreatedTenant['keys'] }
  const platformKey = await api.newKey('read')
  const password = new URL(tenant.database_url).password
  const { manifest } = (await api.published.some(new Set([tenant.tenant_id])))[0] ?? {}
  if (manifest === undefined) throw new Error('no manifest is published')
  const secrets = [
    ...Object.values(tenant.keys),
    ...Object.values(keys),
    password,
    manifest.signing_secret,
    new URL(manifest.home.url).password,
    new URL(manifest.home.ddl_url).password,
    api.keys.admin,
    platformKey.key,
  ]
  t.same(new Set(secrets).size, 12, 'each is another')
  for (const secret of secrets) t.ok(secret.length >= 43, 'each has 256 bits')

  const ids: Record<string, string[]> = {
    '/v1/tenants/:id': [tenant.tenant_id],
    '/v1/operations/:id': [tenant.operation.id],
  }
  const paths = api.routes
    // A tenant of the shared services has no log, a rollout, backup, webhook or invoice there is none, and without prices nothing to come.
    .filter(
      ({ method, url }) =>
        method === 'GET' &&
        !url.startsWith('/internal/') &&
        !/\/logs$|^\/v1\/(rollouts|backups|webhooks)\/:id|\/:invoice|\/upcoming/.test(url),
    )
    .flatMap(({ url }) =>
      (ids[/^\/v1\/\w+\/:id/.exec(url)?.[0] ?? ''] ?? ['']).map((id) =>
        url.replace(':id', id).replace(':month', '2026-01'),
      ),
    )
  t.ok(paths.length > 12, 'every GET is asked')
  const places: [place: string, text: string][] = []
  for (const path of paths) {
    const answer = await api.call('GET', path)
    t.same(answer.status, 200, path)
    places.push([path, answer.text + JSON.stringify(answer.headers)])
  }
  for (const [method, asked] of [
    ['PATCH', { body: { plan: 'Pro' }, headers: { prefer: 'wait=30' } }],
    ['DELETE', {}],
  ] as const) {
    const answer = await api.call(method, `/v1/tenants/${tenant.tenant_id}`, asked)
    t.ok(answer.status < 300, method)
    places.push([method, answer.text])
  }
  for (const table of Object.keys(await api.counts())) {
    places.push([
      table,
      (await api.sql(`select t::text as text from "${table}" t`)).map(({ text }) => String(text)).join('\n'),
    ])
  }
  places.push([
    'pg_authid',
    (await api.sql('select a::text as text from pg_authid a')).map(({ text }) => String(text)).join('\n'),
  ])
  places.push(['the log', api.log.join('')])
  for (const [place, text] of places) {
    const found = secrets.filter(
      (secret) => text.includes(secret) || text.includes(Buffer.from(secret).toString('hex')),
    )
    t.same(found.length, 0, `${place} holds no secret`)
  }
  const stored = await api.sql('select sha256 from platform_keys')
  t.ok(
    stored.some(({ sha256 }) => sha256 === createHash('sha256').update(platformKey.key).digest('hex')),
    'a platform key is there by its hash',
  )
})

t.test('Prefer: wait holds the answer until the tenant is ready; without it the answer comes at once', async (t) => {
  api.region.agrees = false
  const quick = await api.call('POST', '/v1/tenants', { body: good() })
  t.match(quick, {
    status: 201,
    body: { status: 'pending', observed_generation: 0, operation: { state: 'pending', finished: null } },
  })
  const given = await api.call('POST', '/v1/tenants', { body: good(), headers: { prefer: 'respond-async, wait=1' } })
  t.match(given, { status: 201, body: { status: 'pending', operation: { finished: null } } }, 'the seconds are over')
  const held = api.call('POST', '/v1/tenants', { body: good(), headers: { prefer: 'wait=30' } })
  await until(
    async () => (await api.sql("select 1 from operations where state = 'running'")).length >= 3,
    'three operations under way',
  )
  api.region.agrees = true
  t.match(await held, { status: 201, body: { status: 'ready', operation: { state: 'succeeded' } } })
  for (const { body } of [quick, given]) {
    await until(async () => (await api.tenant((body as CreatedTenant).tenant_id)).status === 'ready', 'readiness')
  }
})

t.test('an Idempotency-Key makes one tenant, however often it is sent', async (t) => {
  const body = good()
  const headers = { 'idempotency-key': newName('key'), prefer: 'wait=30' }
  const first = await api.call('POST', '/v1/tenants', { body, headers })
  t.same(first.status, 201)
  const before = await api.counts()
  const again = await api.call('POST', '/v1/tenants', { body, headers })
  t.match(again, { status: 201, headers: { 'idempotency-replayed': 'true' } })
  t.same(again.body, first.body, 'the very same answer, keys and all')
  isError(
    t,
    await api.call('POST', '/v1/tenants', { body: good(), headers }),
    409,
    'IDEMPOTENCY_MISMATCH',
    'Idempotency-Key',
    'another body',
  )
  const elsewhere = await api.call('POST', `/v1/tenants/${(first.body as CreatedTenant).tenant_id}/keys/rotate`, {
    body: {},
    headers,
  })
  isError(t, elsewhere, 409, 'IDEMPOTENCY_MISMATCH', 'Idempotency-Key', 'another path')
  t.same(await api.counts(), before, 'nothing was made')
  const other = await api.newKey('admin')
  const ofOther = await api.call('POST', '/v1/tenants', { key: other.key, body, headers })
  isError(t, ofOther, 409, 'NAME_TAKEN', body.name, "another operator's Idempotency-Key is another")

  const failed = { 'idempotency-key': newName('key') }
  isError(
    t,
    await api.call('POST', '/v1/tenants', { body: { ...good(), plan: 'Gold' }, headers: failed }),
    400,
    'UNKNOWN_PLAN',
    'Gold',
    'a refusal',
  )
  t.same(
    (await api.call('POST', '/v1/tenants', { body: good(), headers: failed })).status,
    201,
    'a refusal does not use the key up',
  )
})

t.test('an Idempotency-Key sent many times at once makes one tenant', async (t) => {
  const body = good()
  const headers = { 'idempotency-key': newName('key') }
  const before = await api.counts()
  const answers = await Promise.all(Array.from({ length: 6 }, () => api.call('POST', '/v1/tenants', { body, headers })))
  t.same(
    answers.map(({ status }) => status),
    answers.map(() => 201),
  )
  t.same(new Set(answers.map(({ text }) => text)).size, 1, 'all get the same answer')
  t.same(
    answers.filter(({ headers }) => headers['idempotency-replayed'] === 'true').length,
    answers.length - 1,
    'all but one of them as a repeat',
  )
  const later = await api.call('POST', '/v1/tenants', { body, headers })
  t.match(later, { status: 201, headers: { 'idempotency-replayed': 'true' }, body: { name: body.name } })
  const after = await api.counts()
  for (const table of ['tenants', 'operations', 'audit_log', 'idempotency_records']) {
    t.same(after[table], (before[table] ?? 0) + 1, `one more in ${table}`)
  }
})

t.test('one name asked for many times at once is given once', async (t) => {
  const body = good()
  const answers = await Promise.all(Array.from({ length: 5 }, () => api.call('POST', '/v1/tenants', { body })))
  t.same(answers.map(({ status }) => status).sort(), [201, 409, 409, 409, 409])
  for (const answer of answers.filter(({ status }) => status === 409))
    isError(t, answer, 409, 'NAME_TAKEN', body.name, 'the others')
  t.same((await api.sql('select count(*)::int as count from tenants where name = $1', [body.name]))[0]?.['count'], 1)
})

t.test('name, plan and suspension change, each with a generation that is observed', async (t) => {
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
  t.same((await api.call('POST', '/v1/tenants', { body: good(tenant.name) })).status, 201, 'the old name is free')
})

t.test('of two writers that saw the same state, one is refused', async (t) => {
  const { tenant_id: id } = await api.create()
  const seen = await api.call('GET', `/v1/tenants/${id}`)
  t.same(seen.headers['etag'], '"1"')
  const headers = { 'if-match': '"1"', prefer: 'wait=30' }
  const answers = await Promise.all(
    ['Pro', 'Enterprise'].map((plan) => api.call('PATCH', `/v1/tenants/${id}`, { body: { plan }, headers })),
  )
  t.same(answers.map(({ status }) => status).sort(), [200, 412])
  const lost = answers.find(({ status }) => status === 412)
  if (lost === undefined) throw new Error('none was refused')
  isError(t, lost, 412, 'STALE_ETAG', 'generation 1', 'the later one')
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

t.test('while an operation is under way another is refused with its id; a delete supersedes it', async (t) => {
  const { tenant_id: id } = await api.create()
  api.region.agrees = false
  const first = changed(await api.call('PATCH', `/v1/tenants/${id}`, { body: { plan: 'Pro' } }))
  for (const [method, path, body] of [
    ['PATCH', '', { plan: 'Free' }],
    ['POST', '/keys/rotate', {}],
  ] as const) {
    const refused = await api.call(method, `/v1/tenants/${id}${path}`, { body })
    isError(t, refused, 423, 'OPERATION_UNDER_WAY', first.operation.id, method)
    t.match(refused, { headers: { 'retry-after': '1' }, body: { operation_id: first.operation.id } })
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
      `${method} of what goes`,
    )
  }
  api.region.agrees = true
})

t.test('a deleted tenant is kept for its grace time, then nothing of it is left', async (t) => {
  const tenant = await api.create()
  const id = tenant.tenant_id
  const deleted = await api.call('DELETE', `/v1/tenants/${id}`)
  t.match(deleted, { status: 202, body: { purge_after: String, operation: { kind: 'delete' } } })
  const due = new Date(changed(deleted).purge_after ?? 0)
  t.same((await api.tenant(id)).status, 'deleting', 'says so at once')
  await until(() => isUnrouted(id), 'the first phase')
  t.same((await rolesAndSchemas(id)).roles.length, 5, 'what it has is kept')
  const [data] = await query(tenant.database_url, 'select count(*)::int as count from storage_buckets')
  t.same(Number.isInteger(data?.['count']), true, 'and can be read')
  isError(
    t,
    await api.call('POST', '/v1/tenants', { body: good(tenant.name) }),
    409,
    'NAME_TAKEN',
    tenant.name,
    'its name is kept, too',
  )
  const again = changed(await api.call('DELETE', `/v1/tenants/${id}`))
  t.same(again.purge_after, due.toISOString(), 'asked again, it is not kept longer')

  api.clock.ahead = due.getTime() - Date.now() + 1000
  await until(async () => (await api.call('GET', `/v1/tenants/${id}`)).status === 404, 'the second phase')
  api.clock.ahead = 0
  isError(t, await api.call('GET', `/v1/tenants/${id}`), 404, 'TENANT_NOT_FOUND', 'tenant', 'afterwards')
  t.same(await rolesAndSchemas(id), { roles: [], schemas: [] })
  t.ok(api.region.removed.includes(id), 'its files are gone')
  t.same(await api.published.some(new Set([id])), [])
  t.same(await api.sql('select 1 from tenant_secrets where tenant_id = $1', [id]), [], 'its secrets are gone')
  await t.rejects(query(tenant.database_url, 'select 1'), { code: /^28/ }, 'its login is gone')
  const { operations } = (await api.call('GET', `/v1/operations?tenant_id=${id}`)).body as {
    operations: OperationBody[]
  }
  t.same(
    operations.map(({ kind, state }) => `${kind} ${state}`),
    ['create succeeded', 'delete superseded', 'delete succeeded'],
  )
  const next = await api.create(tenant.name)
  t.not(next.tenant_id, id, 'the name is free for another')
})

t.test('what was seen before a delete does not hide it', async (t) => {
  const { tenant_id: id } = await api.create()
  api.region.agrees = false
  await api.call('DELETE', `/v1/tenants/${id}`)
  const epoch = BigInt(String((await api.sql('select epoch from installation'))[0]?.['epoch']))
  // As a run does that took its snapshot before.
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

t.test('?purge=true destroys at once, also what is in its grace time', async (t) => {
  for (const graceFirst of [false, true]) {
    const { tenant_id: id } = await api.create()
    if (graceFirst) {
      await api.call('DELETE', `/v1/tenants/${id}?purge=false`)
      await until(() => isUnrouted(id), 'the first phase')
    }
    const purged = await api.call('DELETE', `/v1/tenants/${id}?purge=true`, { headers: { prefer: 'wait=30' } })
    t.match(purged, { status: 202, body: { tenant_id: id, operation: { kind: 'delete', state: 'succeeded' } } })
    t.same((await api.call('GET', `/v1/tenants/${id}`)).status, 404)
    t.same(await rolesAndSchemas(id), { roles: [], schemas: [] })
    isError(t, await api.call('DELETE', `/v1/tenants/${id}?purge=true`), 404, 'TENANT_NOT_FOUND', 'tenant', 'once more')
  }
})

t.test('new API keys beside the old, which end after the overlap', async (t) => {
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
    'both, the newest first',
  )
  api.clock.ahead = 61_000
  t.same(await live(), { keys: hashes(keys), jwt_secrets: [keys.jwt_secret] }, 'the old ones have ended')
  await until(
    async () => (await api.sql('select 1 from tenant_secrets where tenant_id = $1', [id])).length === 7,
    'their removal',
  )
  api.clock.ahead = 0
})

t.test('no call ended in an error of ours', (t) => {
  t.same(
    api.log.filter((line) => line.includes('request failed')),
    [],
  )
  t.end()
})
