// The API creates a tenant once per name and Idempotency-Key, and returns its secrets only in the creation's response.
import { createHash } from 'node:crypto'
import t from 'tap'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { isError, newName, startApi, type CreatedTenant } from '#test/support/control-plane/api.ts'
import { newTenantBody, rolesAndSchemas } from './support/tenants.ts'

const api = await startApi(t)

t.test('a created tenant is ready and complete, and its database_url logs in', async (t) => {
  const name = newName()
  const response = await api.call('POST', '/v1/tenants', { body: newTenantBody(name), headers: { prefer: 'wait=30' } })
  const tenant = response.body as CreatedTenant
  const id = tenant.tenant_id
  t.same(response.status, 201)
  t.match(response.headers, { location: `/v1/tenants/${id}`, etag: '"1"' })
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
  t.same(await rolesAndSchemas(api, id), {
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

/**
 * The routes that have nothing to return here: a shared tenant has no log and no archive; the test does not fill in the ID
 * of a host; there is no rollout, backup, webhook, blocked address, invoice, spending limit or console session; without prices
 * there is no upcoming invoice; and `/v1/changes` is a stream without an end.
 */
const withoutDocument = new RegExp(
  [
    '/(logs|recovery|spending-limit|prices|changes)$',
    '^/v1/(rollouts|backups|webhooks|hosts)/:id|/:rebalance',
    '/:address|/:invoice|/upcoming|/:file|-sessions/current',
  ].join('|'),
)

t.test('secrets appear in the response that creates them, and nowhere else in plain text', async (t) => {
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
  t.same(new Set(secrets).size, 12, 'all secrets differ')
  for (const secret of secrets) t.ok(secret.length >= 43, 'each secret has 256 bits')

  const ids: Record<string, string[]> = {
    '/v1/tenants/:id': [tenant.tenant_id],
    '/v1/operations/:id': [tenant.operation.id],
    '/v1/regions/:id': ['local'],
  }
  const paths = api.routes
    .filter(({ method, url }) => method === 'GET' && !url.startsWith('/internal/') && !withoutDocument.test(url))
    .flatMap(({ url }) =>
      (ids[/^\/v1\/\w+\/:id/.exec(url)?.[0] ?? ''] ?? ['']).map((id) =>
        url.replace(':id', id).replace(':month', '2026-01'),
      ),
    )
  t.ok(paths.length > 12, 'every GET route is called')
  const outputs: [source: string, text: string][] = []
  for (const path of paths) {
    const response = await api.call('GET', path)
    t.same(response.status, 200, path)
    outputs.push([path, response.text + JSON.stringify(response.headers)])
  }
  for (const [method, options] of [
    ['PATCH', { body: { plan: 'Pro' }, headers: { prefer: 'wait=30' } }],
    ['DELETE', {}],
  ] as const) {
    const response = await api.call(method, `/v1/tenants/${tenant.tenant_id}`, options)
    t.ok(response.status < 300, method)
    outputs.push([method, response.text])
  }
  for (const table of Object.keys(await api.counts())) {
    outputs.push([
      table,
      (await api.sql(`select t::text as text from "${table}" t`)).map(({ text }) => String(text)).join('\n'),
    ])
  }
  outputs.push([
    'pg_authid',
    (await api.sql('select a::text as text from pg_authid a')).map(({ text }) => String(text)).join('\n'),
  ])
  outputs.push(['the log', api.log.join('')])
  for (const [source, text] of outputs) {
    const found = secrets.filter(
      (secret) => text.includes(secret) || text.includes(Buffer.from(secret).toString('hex')),
    )
    t.same(found.length, 0, `${source} contains no secret`)
  }
  const stored = await api.sql('select sha256 from platform_keys')
  t.ok(
    stored.some(({ sha256 }) => sha256 === createHash('sha256').update(platformKey.key).digest('hex')),
    'a platform key is stored as its hash',
  )
})

t.test(
  'Prefer: wait delays the response until the tenant is ready; without it the response is immediate',
  async (t) => {
    api.region.agrees = false
    const quick = await api.call('POST', '/v1/tenants', { body: newTenantBody() })
    t.match(quick, {
      status: 201,
      body: { status: 'pending', observed_generation: 0, operation: { state: 'pending', finished: null } },
    })
    const timedOut = await api.call('POST', '/v1/tenants', {
      body: newTenantBody(),
      headers: { prefer: 'respond-async, wait=1' },
    })
    t.match(timedOut, { status: 201, body: { status: 'pending', operation: { finished: null } } }, 'the wait has ended')
    const held = api.call('POST', '/v1/tenants', { body: newTenantBody(), headers: { prefer: 'wait=30' } })
    await until(
      async () => (await api.sql("select 1 from operations where state = 'running'")).length >= 3,
      'three operations in progress',
    )
    api.region.agrees = true
    t.match(await held, { status: 201, body: { status: 'ready', operation: { state: 'succeeded' } } })
    for (const { body } of [quick, timedOut]) {
      await until(async () => (await api.tenant((body as CreatedTenant).tenant_id)).status === 'ready', 'readiness')
    }
  },
)

t.test('repeats with one Idempotency-Key create one tenant', async (t) => {
  const body = newTenantBody()
  const headers = { 'idempotency-key': newName('key'), prefer: 'wait=30' }
  const first = await api.call('POST', '/v1/tenants', { body, headers })
  t.same(first.status, 201)
  const before = await api.counts()
  const again = await api.call('POST', '/v1/tenants', { body, headers })
  t.match(again, { status: 201, headers: { 'idempotency-replayed': 'true' } })
  t.same(again.body, first.body, 'the repeat gets the same response, with the keys')
  isError(
    t,
    await api.call('POST', '/v1/tenants', { body: newTenantBody(), headers }),
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
  t.same(await api.counts(), before, 'nothing is created')
  const other = await api.newKey('admin')
  const ofOther = await api.call('POST', '/v1/tenants', { key: other.key, body, headers })
  isError(t, ofOther, 409, 'NAME_TAKEN', body.name, "another operator's Idempotency-Key is separate")

  const failed = { 'idempotency-key': newName('key') }
  isError(
    t,
    await api.call('POST', '/v1/tenants', { body: { ...newTenantBody(), plan: 'Gold' }, headers: failed }),
    400,
    'UNKNOWN_PLAN',
    'Gold',
    'an unknown plan',
  )
  t.same(
    (await api.call('POST', '/v1/tenants', { body: newTenantBody(), headers: failed })).status,
    201,
    'a rejected request does not use the key',
  )
})

t.test('concurrent requests with one Idempotency-Key create one tenant', async (t) => {
  const body = newTenantBody()
  const headers = { 'idempotency-key': newName('key') }
  const before = await api.counts()
  const responses = await Promise.all(
    Array.from({ length: 6 }, () => api.call('POST', '/v1/tenants', { body, headers })),
  )
  t.same(
    responses.map(({ status }) => status),
    responses.map(() => 201),
  )
  t.same(new Set(responses.map(({ text }) => text)).size, 1, 'all get the same response')
  t.same(
    responses.filter(({ headers }) => headers['idempotency-replayed'] === 'true').length,
    responses.length - 1,
    'all but one are replayed',
  )
  const later = await api.call('POST', '/v1/tenants', { body, headers })
  t.match(later, { status: 201, headers: { 'idempotency-replayed': 'true' }, body: { name: body.name } })
  const after = await api.counts()
  for (const table of ['tenants', 'operations', 'audit_log', 'idempotency_records']) {
    t.same(after[table], (before[table] ?? 0) + 1, `one more in ${table}`)
  }
})

t.test('of concurrent creations with one name, one succeeds', async (t) => {
  const body = newTenantBody()
  const responses = await Promise.all(Array.from({ length: 5 }, () => api.call('POST', '/v1/tenants', { body })))
  t.same(responses.map(({ status }) => status).sort(), [201, 409, 409, 409, 409])
  for (const response of responses.filter(({ status }) => status === 409))
    isError(t, response, 409, 'NAME_TAKEN', body.name, 'the other creations')
  t.same((await api.sql('select count(*)::int as count from tenants where name = $1', [body.name]))[0]?.['count'], 1)
})

t.test('no call failed with an internal error', (t) => {
  t.same(
    api.log.filter((line) => line.includes('The request failed.')),
    [],
  )
  t.end()
})
