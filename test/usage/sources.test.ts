// The API lists the sources of usage. An operator retires a source that is gone; its next push makes it active again.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { openDatabase } from '#control-plane/platform/database.ts'
import { createUsageLedger } from '#control-plane/usage/store-ledger.ts'
import { isError, startApi } from '#test/support/control-plane/api.ts'
import { newTenantId, pushOf } from './support/ledger.ts'

const api = await startApi(t, { control: false })
const database = openDatabase(api.controlUrl)
t.teardown(() => database.$disconnect())
const ledger = createUsageLedger(database, () => new Date(Date.now() + api.clock.ahead))
const boot = randomUUID()
const hour = '2026-05-10T11:00:00.000Z'
const push = (source: string) => ledger.record(pushOf(source, boot, [], hour))

t.test('the API lists the sources page by page, and by kind', async (t) => {
  const tenant = newTenantId()
  await push('gateway-b')
  await push('gateway-a')
  await ledger.recordHome({ tenantId: tenant, boot, completeUntil: new Date(hour), hours: [] })
  const all = (await api.call('GET', '/v1/usage/sources')).body as { sources: { source: string }[] }
  t.match(all, {
    sources: [
      { source: 'gateway-a', tenant_id: null, complete_until: hour, retired_at: null },
      { source: 'gateway-b' },
      { source: `home:${tenant}`, tenant_id: tenant },
    ],
    next_cursor: null,
  })
  const first = (await api.call('GET', '/v1/usage/sources?limit=2')).body as { sources: unknown[]; next_cursor: string }
  t.equal(first.sources.length, 2)
  t.match((await api.call('GET', `/v1/usage/sources?limit=2&cursor=${first.next_cursor}`)).body, {
    sources: [{ tenant_id: tenant }],
    next_cursor: null,
  })
  t.match((await api.call('GET', '/v1/usage/sources?kind=home')).body, { sources: [{ tenant_id: tenant }] })
  t.same(
    ((await api.call('GET', '/v1/usage/sources?kind=gateway')).body as typeof all).sources.map(({ source }) => source),
    ['gateway-a', 'gateway-b'],
  )
  for (const query of ['kind=car', 'cursor=%00', 'cursor=AA', 'limit=0']) {
    isError(
      t,
      await api.call('GET', `/v1/usage/sources?${query}`),
      400,
      'INVALID_PARAMETER',
      query.slice(0, query.indexOf('=')),
      query,
    )
  }
})

t.test(
  'a source that pushed lately is not retired; an older one is, with an audit entry, until it pushes again',
  async (t) => {
    const path = '/v1/usage/sources/gateway-a'
    const before = await api.counts()
    isError(t, await api.call('DELETE', path), 409, 'SOURCE_LIVES', 'gateway-a', 'at work')
    for (const name of ['unknown', '%00', '..%2f'])
      isError(t, await api.call('DELETE', `/v1/usage/sources/${name}`), 404, 'SOURCE_NOT_FOUND', 'source', name)
    t.same(await api.counts(), before)
    api.clock.ahead = 61_000
    const retired = await api.call('DELETE', path)
    t.match(retired, { status: 200, body: { source: 'gateway-a', complete_until: hour } })
    const at = (retired.body as { retired_at: string }).retired_at
    api.clock.ahead = 120_000
    t.match((await api.call('DELETE', path)).body, { retired_at: at }, 'a repeat changes nothing')
    t.match(await api.sql('select action, target from audit_log order by seq desc limit 1'), [
      { action: 'usage_source.retire', target: 'gateway-a' },
    ])
    await push('gateway-a')
    t.match((await api.call('GET', '/v1/usage/sources?limit=1')).body, {
      sources: [{ source: 'gateway-a', retired_at: null }],
    })
  },
)
