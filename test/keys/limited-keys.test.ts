// Keys that are limited to a tenant or a region: every route of the OpenAPI document with keys of others, what lists show,
// and that no key creates one with more rights.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { limitedAccess, limitedAccessOf } from '#control-plane/keys/limited-access.ts'
import { isError, newName, startApi, type ApiResponse } from '#test/support/control-plane/api.ts'

interface Key {
  id: string
  name: string
  scope: string
  tenant_id: string | null
  region: string | null
  addresses: string[]
  expires_at: string | null
  key: string
}

const api = await startApi(t, { cloud: true })
const pro = { plan: 'Pro' }
const own = await api.create(newName('own'))
const neighbour = await api.create(newName('neighbour'))
const remote = await api.create(newName('remote'), { region: 'cloud', ...pro })
const ids = { own: own.tenant_id, neighbour: neighbour.tenant_id, remote: remote.tenant_id }

const create = (body: Record<string, unknown>, key = api.keys.admin) =>
  api.call('POST', '/v1/keys', { key, body: { name: newName('key'), scope: 'admin', ...body } })
const newKey = async (body: Record<string, unknown>, key = api.keys.admin): Promise<Key> => {
  const response = await create(body, key)
  if (response.status !== 201) throw new Error(`creating a key failed with ${response.status}: ${response.text}`)
  return response.body as Key
}
const ofTenant = await newKey({ tenant_id: ids.own })
const ofRegion = await newKey({ region: 'local' })
const ofRemote = await newKey({ tenant_id: ids.remote })

/** The objects of each tenant that routes name by their own IDs. */
const objects = Object.fromEntries(
  await Promise.all(
    [own, neighbour, remote].map(async ({ tenant_id: tenantId, region, operation }) => {
      const [backup, rollout] = [randomUUID(), randomUUID()]
      await api.sql(
        `insert into backups (id, tenant_id, region_id, trigger, state, key) values ($1, $2, $3, 'request', 'failed', '')`,
        [backup, tenantId, region],
      )
      await api.sql(
        `insert into rollouts (id, region_id, component, image, image_id, wave_size, soak_seconds, deadline_seconds, state)
          values ($1, $2, 'runtime', 'image:1', 'sha256:1', 1, 1, 2, 'succeeded')`,
        [rollout, region],
      )
      return [tenantId, { operation: operation.id, backup, rollout, region }] as const
    }),
  ),
)

const { paths } = (await api.call('GET', '/openapi.json', { key: null })).body as { paths: Record<string, object> }
const routes = Object.entries(paths)
  .filter(([path]) => path.startsWith('/v1/') && path !== '/v1/certificate-authority.pem')
  .flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({
      method: method.toUpperCase(),
      path: path.replaceAll(/\{(\w+)\}/g, ':$1'),
    })),
  )
  // The sign-in to the console is public.
  .filter(({ method, path }) => `${method} ${path}` !== 'POST /v1/console-sessions')

/** Calls a route about an object of a tenant. The unknown parameter makes the route reject the call if it is allowed. */
const callAbout = (method: string, path: string, tenantId: string, key: string): Promise<ApiResponse> => {
  const object = objects[tenantId]
  if (object === undefined) throw new Error(`The test has no objects of ${tenantId}`)
  const id = path.startsWith('/v1/operations')
    ? object.operation
    : path.startsWith('/v1/backups')
      ? object.backup
      : path.startsWith('/v1/rollouts')
        ? object.rollout
        : /^\/v1\/(regions|hosts)/.test(path)
          ? object.region
          : tenantId
  const url = path.replace(':id', id).replace(':month', '2026-01').replace(/:\w+/, 'x')
  const body = method === 'POST' || method === 'PUT' || method === 'PATCH' ? { body: {} } : {}
  return api.call(method, `${url}?unknown=1`, { key, ...body })
}

const notFound: Record<string, string> = {
  tenant: 'TENANT_NOT_FOUND',
  'tenant, in its region': 'TENANT_NOT_FOUND',
  'tenant, with a target': 'TENANT_NOT_FOUND',
  operation: 'OPERATION_NOT_FOUND',
  backup: 'BACKUP_NOT_FOUND',
  'backup, with a target': 'BACKUP_NOT_FOUND',
  rollout: 'ROLLOUT_NOT_FOUND',
  region: 'NOT_FOUND',
}
const regionsOnly = ['list of the region', 'region in the body', 'rollout', 'region']

t.test('Every route has a decision, and the table has no other route', (t) => {
  const known = routes.map(({ method, path }) => `${method} ${path}`)
  t.ok(known.length > 70, `the document has ${known.length} routes`)
  t.same([...known, 'GET /metrics'].sort(), Object.keys(limitedAccess).sort())
  t.end()
})

t.test('No route returns or changes what a limited key may not use', async (t) => {
  const before = await api.counts()
  for (const { method, path } of routes) {
    const access = limitedAccessOf(method, path) ?? ''
    const route = `${method} ${path}`
    const limited = async (key: Key) =>
      isError(t, await callAbout(method, path, ids.own, key.key), 403, 'KEY_LIMITED', 'limited to', route)
    if (access === 'unlimited keys only') {
      await limited(ofTenant)
      await limited(ofRegion)
      continue
    }
    if (regionsOnly.includes(access)) await limited(ofTenant)
    const code = notFound[access]
    if (code === undefined) {
      t.ok(['every key', 'keys', 'list', ...regionsOnly].includes(access), `${route} has a known decision`)
      continue
    }
    if (!regionsOnly.includes(access))
      for (const id of [ids.neighbour, ids.remote])
        isError(t, await callAbout(method, path, id, ofTenant.key), 404, code, '', `${route} about another tenant`)
    isError(t, await callAbout(method, path, ids.remote, ofRegion.key), 404, code, '', `${route} about another region`)
    for (const [key, id] of [
      [ofRegion, ids.own],
      [ofRegion, ids.neighbour],
      ...(regionsOnly.includes(access) ? [] : ([[ofTenant, ids.own]] as const)),
    ] as const)
      t.match(
        (await callAbout(method, path, id, key.key)).body,
        { code: /^(UNKNOWN_PARAMETER|INVALID_PARAMETER|UNKNOWN_FIELD|MISSING_FIELD|INVALID_FIELD)$/ },
        `${route} is open to the key`,
      )
  }
  isError(t, await api.call('GET', '/metrics', { key: ofRegion.key }), 403, 'KEY_LIMITED', 'region "local"', 'metrics')
  t.same(await api.counts(), before, 'nothing was created')
})

t.test('Every list shows only what the key may see', async (t) => {
  const listed = routes.filter(
    ({ method, path }) =>
      method === 'GET' && /^(list|list of the region|keys)$/.test(limitedAccessOf(method, path) ?? ''),
  )
  t.same(listed.map(({ path }) => path).sort(), [
    '/v1/hosts',
    '/v1/keys',
    '/v1/operations',
    '/v1/regions',
    '/v1/rollouts',
    '/v1/tenants',
    '/v1/usage',
  ])
  const hidden = (key: Key, tenantId: string) => {
    const object = objects[tenantId]
    const of = key === ofTenant ? [ofRegion.id, ofRemote.id] : [ofRemote.id]
    return [tenantId, object?.operation, ...(tenantId === ids.remote ? [object?.rollout, 'cloud', ...of] : [])]
  }
  for (const { path } of listed) {
    const region = limitedAccessOf('GET', path) === 'list of the region'
    const byRegion = await api.call('GET', path, { key: ofRegion.key })
    t.equal(byRegion.status, 200, path)
    for (const text of hidden(ofRegion, ids.remote)) t.notOk(byRegion.text.includes(String(text)), `${path}: ${text}`)
    if (region) continue
    const byTenant = await api.call('GET', path, { key: ofTenant.key })
    t.equal(byTenant.status, 200, path)
    for (const text of [...hidden(ofTenant, ids.remote), ...hidden(ofTenant, ids.neighbour)])
      t.notOk(byTenant.text.includes(String(text)), `${path}: ${text}`)
    t.ok(byTenant.text.includes(ids.own), `${path} shows the tenant`)
    if (path !== '/v1/keys') t.ok(byRegion.text.includes(ids.neighbour), `${path} shows the tenants of the region`)
  }
  const rollouts = await api.call('GET', '/v1/rollouts', { key: ofRegion.key })
  t.ok(rollouts.text.includes(objects[ids.own]?.rollout ?? '-'), 'the rollouts of the region')
  for (const filter of [`tenants?region=cloud`, `rollouts?region=cloud`, `operations?tenant_id=${ids.remote}`])
    t.match((await api.call('GET', `/v1/${filter}`, { key: ofRegion.key })).text, /^\{"\w+":\[\],/, filter)
  t.match((await api.call('GET', `/v1/operations?tenant_id=${ids.neighbour}`, { key: ofTenant.key })).body, {
    operations: [],
  })
})

t.test('Pages of a limited list have every item once', async (t) => {
  const all = (await api.call('GET', '/v1/operations', { key: ofRegion.key })).body as { operations: { id: string }[] }
  const paged: string[] = []
  let cursor: string | null = null
  do {
    const next: string = cursor === null ? '' : `&cursor=${cursor}`
    const page = (await api.call('GET', `/v1/operations?limit=1${next}`, { key: ofRegion.key })).body as {
      operations: { id: string }[]
      next_cursor: string | null
    }
    paged.push(...page.operations.map(({ id }) => id))
    cursor = page.next_cursor
  } while (cursor !== null)
  t.ok(paged.length >= 2)
  t.same(
    paged,
    all.operations.map(({ id }) => id),
  )
})

t.test('A key of a region creates tenants in it, and a key of a tenant restores only into that tenant', async (t) => {
  const body = (region: string) => ({ name: newName('made'), plan: 'Free', region })
  const post = (key: Key, region: string) =>
    api.call('POST', '/v1/tenants', { key: key.key, body: body(region), headers: { prefer: 'wait=30' } })
  t.equal((await post(ofRegion, 'local')).status, 201)
  isError(t, await post(ofRegion, 'cloud'), 403, 'KEY_LIMITED', 'Field "region" must be "local"', 'another region')
  isError(t, await post(ofTenant, 'local'), 403, 'KEY_LIMITED', ids.own, 'a key of a tenant')
  for (const { key } of [ofRegion, ofTenant]) {
    const moved = await api.call('PATCH', `/v1/tenants/${ids.own}`, { body: { region: 'cloud' }, key })
    isError(t, moved, 403, 'KEY_LIMITED', 'Field "region" must be absent', 'a move to another region')
  }
  const into = { name: newName('copy'), plan: 'Free' }
  for (const path of [`/v1/tenants/${ids.own}/restore`, `/v1/backups/${objects[ids.own]?.backup}/restore`]) {
    const to = path.startsWith('/v1/tenants') ? { to: '2026-01-01T00:00:00Z' } : {}
    const restored = await api.call('POST', path, { key: ofTenant.key, body: { into, ...to } })
    isError(t, restored, 403, 'KEY_LIMITED', 'Field "into" must be "same"', path)
    const same = await api.call('POST', path, { key: ofTenant.key, body: { into: 'same', ...to } })
    t.not(same.status, 403, `${path} into the tenant itself`)
  }
})

t.test('A key never creates one with more rights than its own', async (t) => {
  const office = await newKey({ tenant_id: ids.own, addresses: ['127.0.0.0/8'], expires_in_seconds: 3_600 })
  const before = await api.counts()
  const rejected: [Record<string, unknown>, Key, string][] = [
    [{ tenant_id: ids.neighbour }, ofTenant, ids.own],
    [{ region: 'local' }, ofTenant, ids.own],
    [{ region: 'cloud' }, ofRegion, 'region "local"'],
    [{ tenant_id: ids.remote }, ofRegion, 'region "local"'],
    [{ tenant_id: 't_00000000000000000000' }, ofRegion, 'region "local"'],
    [{ addresses: ['10.0.0.0/8'] }, office, '127.0.0.0/8'],
    [{ addresses: ['127.0.0.1', '0.0.0.0/0'] }, office, '127.0.0.0/8'],
    [{ expires_in_seconds: 3_700 }, office, 'expires at'],
  ]
  for (const [body, key, names] of rejected)
    isError(t, await create(body, key.key), 403, 'KEY_LIMITED', names, JSON.stringify(body))
  for (const [body, code, names] of [
    [{ tenant_id: ids.own, region: 'local' }, 'INVALID_FIELD', '"tenant_id"'],
    [{ region: 'nowhere' }, 'UNKNOWN_REGION', 'local, cloud'],
    [{ addresses: ['10.0.0.0/33'] }, 'INVALID_FIELD', '10.0.0.0/33'],
    [{ addresses: [] }, 'INVALID_FIELD', '"addresses"'],
    [{ expires_in_seconds: 0 }, 'INVALID_FIELD', '"expires_in_seconds"'],
  ] as const)
    isError(t, await create(body), 400, code, names, JSON.stringify(body))
  isError(t, await create({ tenant_id: 't_00000000000000000000' }), 404, 'TENANT_NOT_FOUND', '', 'an unknown tenant')
  t.same(await api.counts(), before, 'no key was created')

  const inherited = await newKey({ scope: 'read' }, office.key)
  t.match(inherited, { scope: 'read', tenant_id: ids.own, region: null, addresses: ['127.0.0.0/8'] })
  t.equal(inherited.expires_at, office.expires_at, 'what the request leaves out is as in the key of the request')
  t.match(await newKey({ tenant_id: ids.neighbour }, ofRegion.key), { tenant_id: ids.neighbour, region: null })
  t.match(await newKey({ addresses: ['2001:DB8:0::/48', '10.1.2.3/8'] }), {
    addresses: ['2001:db8::/48', '10.0.0.0/8'],
  })
  const [entry] = await api.sql(`select detail from audit_log where action = 'key.create' and target = $1`, [office.id])
  t.match(entry?.['detail'], { tenant_id: ids.own, addresses: ['127.0.0.0/8'], expires_at: office.expires_at })
})

t.test('A limited key reads, revokes and rotates only keys without further rights', async (t) => {
  for (const id of [ofRegion.id, ofRemote.id]) {
    isError(t, await api.call('DELETE', `/v1/keys/${id}`, { key: ofTenant.key }), 404, 'KEY_NOT_FOUND', '', 'revoke')
    const rotated = await api.call('POST', `/v1/keys/${id}/rotate`, { key: ofTenant.key, body: {} })
    isError(t, rotated, 404, 'KEY_NOT_FOUND', '', 'rotate')
  }
  const short = await newKey({ expires_in_seconds: 600 })
  const rotated = await api.call('POST', `/v1/keys/${ofRegion.id}/rotate`, { key: short.key, body: {} })
  isError(t, rotated, 403, 'KEY_LIMITED', 'expires at', 'a key without an end')
  const office = await newKey({ region: 'local', addresses: ['127.0.0.1'], expires_in_seconds: 600 })
  const next = await api.call('POST', `/v1/keys/${office.id}/rotate`, { key: ofRegion.key, body: {} })
  t.match(next, { status: 201, body: { region: 'local', addresses: ['127.0.0.1'], expires_at: office.expires_at } })
  const old = ((await api.call('GET', '/v1/keys')).body as { keys: Key[] }).keys.find(({ id }) => id === office.id)
  t.equal(old?.expires_at, office.expires_at, 'the overlap does not extend the old key')
  const mine = await newKey({ tenant_id: ids.own })
  t.match(await api.call('DELETE', `/v1/keys/${mine.id}`, { key: ofTenant.key }), { status: 200 })
})

t.test('Limited admin keys do not count as the last admin key', async (t) => {
  await newKey({ addresses: ['127.0.0.1'] })
  const keys = ((await api.call('GET', '/v1/keys')).body as { keys: Key[] }).keys
  const first = keys.find(({ name }) => name === 'first admin key')
  isError(
    t,
    await api.call('DELETE', `/v1/keys/${first?.id}`),
    409,
    'LAST_ADMIN_KEY',
    'last admin key',
    'the first key',
  )
})

t.test('A key is rejected after its end, and from other addresses', async (t) => {
  const key = await newKey({ expires_in_seconds: 60, addresses: ['203.0.113.0/24', '2001:db8::/32'], scope: 'read' })
  const from = (forwarded?: string, path = '/v1/plans') =>
    api.call('GET', path, {
      key: key.key,
      ...(forwarded === undefined ? {} : { headers: { 'x-forwarded-for': forwarded } }),
    })
  for (const address of [
    '203.0.113.7',
    '198.51.100.1, 203.0.113.7',
    '2001:db8::7',
    '::ffff:203.0.113.7',
    '203.0.113.7, 127.0.0.1',
  ])
    t.equal((await from(address)).status, 200, address)
  for (const address of [
    undefined,
    '198.51.100.1',
    '203.0.113.7, 198.51.100.1',
    '2001:db9::7',
    'unknown',
    '203.0.113.7/24',
  ])
    isError(t, await from(address), 403, 'ADDRESS_NOT_ALLOWED', 'may not be used from', String(address))
  isError(t, await from('198.51.100.1', '/v1/keys'), 403, 'ADDRESS_NOT_ALLOWED', '198.51.100.1', 'before the scope')
  const direct = await api.app.inject({
    method: 'GET',
    url: '/v1/plans',
    headers: { authorization: `Bearer ${key.key}`, 'x-forwarded-for': '203.0.113.7' },
    remoteAddress: '198.51.100.1',
  })
  t.equal(direct.statusCode, 403, 'the header of a client that is not a trusted proxy is ignored')
  api.clock.ahead = 61_000
  isError(t, await from('203.0.113.7'), 401, 'REVOKED_KEY', 'expired', 'after its end')
  api.clock.ahead = 0
})

t.test('A key of a deleted tenant still reads what remains of it', async (t) => {
  const gone = await api.create(newName('gone'))
  const key = await newKey({ tenant_id: gone.tenant_id, scope: 'read' })
  const deleted = await api.call('DELETE', `/v1/tenants/${gone.tenant_id}?purge=true`, {
    headers: { prefer: 'wait=30' },
  })
  t.match(deleted.body, { operation: { state: 'succeeded' } })
  t.equal((await api.call('GET', `/v1/tenants/${gone.tenant_id}/usage`, { key: key.key })).status, 200)
  isError(
    t,
    await api.call('GET', `/v1/tenants/${gone.tenant_id}`, { key: key.key }),
    404,
    'TENANT_NOT_FOUND',
    '',
    'it',
  )
})
