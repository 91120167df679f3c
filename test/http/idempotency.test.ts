// `Idempotency-Key`: one write and one response, however often a request is sent and whatever fails.
import t from 'tap'
import type { TenantBody } from '#control-plane/tenants/index.ts'
import { isError, newName, startApi, type ApiResponse, type CreatedTenant } from '#test/support/control-plane/api.ts'

const api = await startApi(t)

const good = (name = newName()) => ({ name, plan: 'Free', region: 'local' })
const withKey = (key = newName('key')) => ({ 'idempotency-key': key })
const isReplayed = ({ headers }: ApiResponse) => headers['idempotency-replayed'] === 'true'
const stored = async (key: string) =>
  (await api.sql('select answer is not null as response from idempotency_records where key = $1', [key])).map(
    ({ response }) => response,
  )

t.test('Concurrent requests with one key make one write, and all get its response', async (t) => {
  const [tenant, other, third] = [await api.create(), await api.create(), await api.create()]
  const webhook = await api.call('POST', '/v1/webhooks', { body: { url: 'https://public.test/' } })
  const { id: platformKey } = await api.newKey('read')
  const cases: [string, object, string][] = [
    ['/v1/tenants', good(), 'tenants'],
    ['/v1/keys', { name: newName(), scope: 'read' }, 'platform_keys'],
    [`/v1/keys/${platformKey}/rotate`, {}, 'platform_keys'],
    [`/v1/tenants/${tenant.tenant_id}/keys/rotate`, {}, 'operations'],
    [`/v1/tenants/${other.tenant_id}/database-password/rotate`, {}, 'operations'],
    [`/v1/tenants/${third.tenant_id}/service-passwords/rotate`, {}, 'operations'],
    ['/v1/webhooks', { url: 'https://public.test/hook' }, 'webhook_endpoints'],
    [`/v1/webhooks/${(webhook.body as { id: string }).id}/rotate`, {}, 'audit_log'],
  ]
  for (const [path, body, table] of cases) {
    const headers = withKey()
    const before = await api.counts()
    const responses = await Promise.all(Array.from({ length: 8 }, () => api.call('POST', path, { body, headers })))
    const [first] = responses
    t.ok([200, 201].includes(first?.status ?? 0), `${path} returned ${first?.status}`)
    t.same(new Set(responses.map(({ status, text }) => `${status} ${text}`)).size, 1, 'with one response')
    t.same(responses.filter(isReplayed).length, 7, 'seven of them are replays')
    const after = await api.counts()
    for (const one of new Set([table, 'audit_log', 'idempotency_records']))
      t.same(after[one], (before[one] ?? 0) + 1, `one more row in ${one}`)
    t.match(await api.call('POST', path, { body, headers }), { status: first?.status, text: first?.text })
  }
})

t.test('Of different concurrent requests with one key, one is done', async (t) => {
  const headers = withKey()
  const bodies = Array.from({ length: 6 }, () => good())
  const responses = await Promise.all(bodies.map((body) => api.call('POST', '/v1/tenants', { body, headers })))
  t.same(responses.filter(({ status }) => status === 201).length, 1)
  for (const response of responses.filter(({ status }) => status !== 201))
    isError(t, response, 409, 'IDEMPOTENCY_MISMATCH', 'Idempotency-Key', 'another one')
  t.same(
    (await api.sql('select name from tenants where name = any($1)', [bodies.map(({ name }) => name)])).length,
    1,
    'one tenant was created',
  )
})

t.test('A request that waits for one that fails is done instead', async (t) => {
  const taken = await api.create()
  const headers = withKey('used-by-a-rejection')
  const both = await Promise.all([1, 2].map(() => api.call('POST', '/v1/tenants', { body: good(taken.name), headers })))
  for (const response of both) isError(t, response, 409, 'NAME_TAKEN', taken.name, 'a rejection')
  t.same(await stored('used-by-a-rejection'), [], 'a rejected request does not use the key')
  t.same((await api.call('POST', '/v1/tenants', { body: good(), headers })).status, 201)
})

t.test('A write whose response cannot be stored is rolled back', async (t) => {
  const headers = withKey('unstored')
  const body = good()
  const before = await api.counts()
  await api.sql("create function reject() returns trigger language plpgsql as $$ begin raise 'no room'; end $$")
  await api.sql('create trigger reject before update on idempotency_records for each row execute function reject()')
  t.same((await api.call('POST', '/v1/tenants', { body, headers })).status, 500)
  t.same(await api.counts(), before, 'nothing was written')
  await api.sql('drop trigger reject on idempotency_records')
  const response = await api.call('POST', '/v1/tenants', { body, headers })
  t.same([response.status, isReplayed(response)], [201, false])
})

t.test('The response stored with the write is returned when the final one could not be stored', async (t) => {
  const headers = { ...withKey('half-stored'), prefer: 'wait=30' }
  const body = good()
  await api.sql(`create trigger reject before update on idempotency_records for each row when (old.answer is not null)
    execute function reject()`)
  t.same((await api.call('POST', '/v1/tenants', { body, headers })).status, 500, 'the caller does not know the result')
  await api.sql('drop trigger reject on idempotency_records')
  const before = await api.counts()
  const again = await api.call('POST', '/v1/tenants', { body, headers })
  t.match(again, { status: 201, body: { name: body.name, status: 'pending' } })
  t.ok(isReplayed(again))
  t.same(await api.counts(), before, 'nothing is created again')
  const { tenant_id: id, keys } = again.body as CreatedTenant
  t.match(keys, { secret_key: /^tn_secret_/ }, 'with the keys, which are shown once')
  t.match(await api.tenant(id), { status: 'ready' } satisfies Partial<TenantBody>)
})

t.test('A key older than a day stands for a new request, and old responses are deleted', async (t) => {
  const headers = withKey('daily')
  const first = await api.call('POST', '/v1/keys', { body: { name: 'today', scope: 'read' }, headers })
  api.clock.ahead = 23 * 3_600_000
  t.ok(isReplayed(await api.call('POST', '/v1/keys', { body: { name: 'today', scope: 'read' }, headers })))
  api.clock.ahead = 25 * 3_600_000
  const both = await Promise.all(
    [1, 2].map(() => api.call('POST', '/v1/keys', { body: { name: 'tomorrow', scope: 'read' }, headers })),
  )
  for (const { status, body } of both) {
    t.same(status, 201)
    t.match(body, { name: 'tomorrow' })
    t.not((body as { id: string }).id, (first.body as { id: string }).id)
  }
  t.same(both.filter(isReplayed).length, 1, 'the new request is done once, too')
  t.same(
    (await api.sql('select key from idempotency_records')).map(({ key }) => key),
    ['daily'],
    'all others are deleted',
  )
  api.clock.ahead = 0
})
