// The operators' API of blocked addresses, and the watch by which gateways receive them.
import { internalPaths, internalTokenHeader, type BlockedAddress, type WatchLine } from '@tenantry/contract'
import t from 'tap'
import { internalToken, isError, startApi } from '#test/support/control-plane/api.ts'
import { until } from '#test/support/until.ts'

interface Entry {
  address: string
  reason: string
  created_at: string
  expires_at: string | null
}

type Line = WatchLine<BlockedAddress, 'address'>

const api = await startApi(t, { control: false })
const path = (address: string) => `/v1/blocked-addresses/${encodeURIComponent(address)}`
const block = (address: string, more: object = {}) =>
  api.call('PUT', path(address), { body: { reason: 'floods', ...more } })
const list = async (query = '') => {
  const { body } = await api.call('GET', `/v1/blocked-addresses${query}`)
  return body as { blocked_addresses: Entry[]; next_cursor: string | null }
}
const listed = async (query = '') => (await list(query)).blocked_addresses.map(({ address }) => address)
const clear = () =>
  api.sql(`with gone as (delete from blocked_addresses returning address)
    insert into changes (kind, tenant_id, transaction_id)
      select 'blocked', address, pg_current_xact_id()::text::bigint from gone`)

t.test('An address is blocked, shown, replaced and unblocked, and the audit log has each change', async (t) => {
  const made = await block('203.0.113.77/24', { expires_in_seconds: 3600 })
  t.equal(made.status, 200, made.text)
  const entry = made.body as Entry
  t.match(entry, { address: '203.0.113.0/24', reason: 'floods' }, 'in canonical form')
  t.equal(Date.parse(entry.expires_at ?? ''), Date.parse(entry.created_at) + 3_600_000)
  t.same((await api.call('GET', path('203.0.113.9/24'))).body, entry)
  t.equal((await api.call('GET', '/v1/blocked-addresses/203.0.113.0%2F24')).status, 200)
  t.same((await list()).blocked_addresses, [entry])

  const replaced = await block('203.0.113.0/24', { reason: 'scans' })
  t.match(replaced.body, { address: '203.0.113.0/24', reason: 'scans', expires_at: null })
  t.same((await list()).blocked_addresses, [replaced.body], 'one entry for each address')

  t.equal((await api.call('DELETE', path('203.0.113.0/24'))).status, 204)
  t.same(await listed(), [])
  for (const method of ['GET', 'DELETE'] as const)
    isError(
      t,
      await api.call(method, path('203.0.113.0/24')),
      404,
      'BLOCKED_ADDRESS_NOT_FOUND',
      '203.0.113.0/24',
      method,
    )
  const { entries } = (await api.call('GET', '/v1/audit?limit=3')).body as { entries: object[] }
  t.match(entries.toReversed(), [
    { action: 'blocked_address.put', target: '203.0.113.0/24', detail: { expires_at: entry.expires_at } },
    { action: 'blocked_address.put', target: '203.0.113.0/24', detail: { reason: 'scans', expires_at: null } },
    { action: 'blocked_address.delete', target: '203.0.113.0/24', detail: { reason: 'scans' } },
  ])
})

t.test('Entries may overlap, and an operator finds all that contain an address', async (t) => {
  t.teardown(clear)
  for (const address of [
    '198.51.100.7',
    '198.51.0.0/16',
    '198.51.100.0/24',
    '2001:db8::/32',
    '2001:db8:0:1::/64',
    '::',
  ])
    t.equal((await block(address)).status, 200, address)
  t.same(await listed('?containing=198.51.100.7'), ['198.51.100.7', '198.51.0.0/16', '198.51.100.0/24'])
  t.same(await listed('?containing=198.51.100.8'), ['198.51.0.0/16', '198.51.100.0/24'])
  t.same(await listed('?containing=2001:DB8:0:1::9'), ['2001:db8::/32', '2001:db8:0:1::/64'])
  t.same(await listed('?containing=192.0.2.1'), [])
  isError(t, await api.call('GET', '/v1/blocked-addresses?containing=x'), 400, 'INVALID_PARAMETER', '"x"', 'no address')

  const first = await list('?limit=4')
  const rest = await list(`?limit=4&cursor=${first.next_cursor ?? ''}`)
  t.same([first.blocked_addresses.length, rest.blocked_addresses.length, rest.next_cursor], [4, 2, null])
  t.same([...first.blocked_addresses, ...rest.blocked_addresses], (await list()).blocked_addresses)
})

t.test('Invalid requests are rejected by name, and change nothing', async (t) => {
  const before = await api.counts()
  for (const address of [
    'nonsense',
    '203.0.113.256',
    '203.0.113.0/33',
    '2001:db8::/129',
    'fe80::1%eth0',
    '10.0.0.0/8/8',
  ])
    for (const method of ['PUT', 'GET', 'DELETE'] as const) {
      const body = method === 'PUT' ? { body: { reason: 'x' } } : {}
      const response = await api.call(method, path(address), body)
      isError(t, response, 400, 'INVALID_PARAMETER', `"${address}"`, `${method} ${address}`)
    }
  for (const [body, code, names] of [
    [{}, 'MISSING_FIELD', '"reason"'],
    [{ reason: '' }, 'INVALID_FIELD', '"reason"'],
    [{ reason: 'x'.repeat(201) }, 'INVALID_FIELD', '"reason"'],
    [{ reason: 'x', expires_in_seconds: 0 }, 'INVALID_FIELD', '"expires_in_seconds"'],
    [{ reason: 'x', expires_in_seconds: '60' }, 'INVALID_FIELD', '"expires_in_seconds"'],
    [{ reason: 'x', expires_in_seconds: 367 * 86_400 }, 'INVALID_FIELD', '"expires_in_seconds"'],
    [{ reason: 'x', confirmed: 1 }, 'INVALID_FIELD', '"confirmed"'],
    [{ reason: 'x', until: 'tomorrow' }, 'UNKNOWN_FIELD', '"until"'],
  ] as const)
    isError(
      t,
      await api.call('PUT', path('203.0.113.7'), { body }),
      400,
      code,
      names,
      JSON.stringify(body).slice(0, 60),
    )
  for (const scope of ['read', 'billing'] as const) {
    const options = { key: api.keys[scope], body: { reason: 'x' } }
    t.equal((await api.call('PUT', path('203.0.113.7'), options)).status, 403, scope)
    t.equal((await api.call('DELETE', path('203.0.113.7'), { key: api.keys[scope] })).status, 403, scope)
  }
  t.equal((await api.call('GET', '/v1/blocked-addresses', { key: api.keys.read })).status, 200)
  t.same(await api.counts(), before)
})

t.test('Loopback addresses and very large networks need a confirmation', async (t) => {
  t.teardown(clear)
  for (const [address, names] of [
    ['127.0.0.1', 'loopback'],
    ['127.3.0.0/16', 'loopback'],
    ['::1', 'loopback'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['0.0.0.0/0', 'all IPv4 addresses'],
    ['::/0', 'all IPv6 addresses'],
    ['128.0.0.0/1', 'shorter than 8 bits'],
    ['2000::/3', 'shorter than 16 bits'],
  ] as const) {
    isError(t, await block(address), 422, 'CONFIRMATION_REQUIRED', names, address)
    isError(t, await block(address, { confirmed: false }), 422, 'CONFIRMATION_REQUIRED', '"confirmed"', address)
    t.equal((await block(address, { confirmed: true })).status, 200, address)
  }
  t.equal((await block('10.0.0.0/8')).status, 200, 'a network of 8 bits does not')
  t.equal((await api.call('DELETE', path('0.0.0.0/0'))).status, 204, 'the API itself is not behind the gateway')
})

t.test('At most 10,000 entries exist, and those that have expired do not count', async (t) => {
  t.teardown(clear)
  await api.sql(`insert into blocked_addresses (address, reason, created_at, expires_at)
    select '10.0.' || n / 256 || '.' || n % 256, 'many', now(), case when n = 0 then now() + interval '1 hour' end
    from generate_series(0, 9999) as n`)
  isError(t, await block('203.0.113.7'), 409, 'TOO_MANY_BLOCKED_ADDRESSES', '10000', 'one more')
  t.equal((await block('10.0.0.1', { reason: 'changed' })).status, 200, 'an entry can be replaced')
  await api.sql("update blocked_addresses set expires_at = created_at - interval '1 minute' where address = '10.0.0.0'")
  isError(t, await api.call('GET', path('10.0.0.0')), 404, 'BLOCKED_ADDRESS_NOT_FOUND', '10.0.0.0', 'it has expired')
  t.equal((await block('203.0.113.7')).status, 200)
  t.same(await api.sql("select 1 from blocked_addresses where address = '10.0.0.0'"), [])
})

t.test('Gateways receive the entries and each change, and nobody else does', async (t) => {
  const url = await api.app.listen({ host: '127.0.0.1', port: 0 })
  await block('198.51.100.0/24')
  await block('192.0.2.1', { expires_in_seconds: 60 })
  const refused = await fetch(new URL(internalPaths.watchBlockedAddresses, url))
  t.equal(refused.status, 404)
  await refused.body?.cancel()

  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const response = await fetch(new URL(internalPaths.watchBlockedAddresses, url), {
    headers: { [internalTokenHeader]: internalToken },
    signal: stop.signal,
  })
  const lines: Line[] = []
  const read = async () => {
    let rest = ''
    for await (const chunk of (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
      const parts = (rest + chunk).split('\n')
      rest = parts.pop() ?? ''
      lines.push(...parts.map((part) => JSON.parse(part) as Line))
    }
  }
  // The reading ends when it is aborted.
  read().catch(() => undefined)
  const current = () => {
    const set = new Set<string>()
    for (const line of lines) {
      if (line.type === 'put') set.add(line.entry.address)
      if (line.type === 'remove') set.delete(line.address)
    }
    return [...set].sort()
  }
  const expected = ['192.0.2.1', '198.51.100.0/24']
  // The set may still have the entries of the test before, and lose them by changes.
  await until(
    () => lines.some(({ type }) => type === 'synced') && current().join() === expected.join(),
    'the whole set, and nothing else',
  )
  const generationOf = (line: Line) => (line.type === 'put' ? line.entry.generation : Infinity)
  const known = Math.max(...lines.filter(({ type }) => type === 'put').map(generationOf))
  await block('2001:db8::/48')
  await block('192.0.2.1')
  await api.call('DELETE', path('198.51.100.0/24'))
  // What happened before may arrive again as changes.
  const isNew = (line: Line) =>
    line.type === 'put' ? line.entry.generation > known : line.type === 'remove' && line.address === '198.51.100.0/24'
  const changes = () => lines.filter(isNew)
  await until(() => changes().length >= 3, 'the changes')
  t.match(changes(), [
    { type: 'put', entry: { address: '2001:db8::/48', expires_at: null } },
    { type: 'put', entry: { address: '192.0.2.1', expires_at: null } },
    { type: 'remove', address: '198.51.100.0/24' },
  ])
  const generations = changes().map(generationOf)
  t.same(
    generations,
    generations.toSorted((a, b) => a - b),
    'generations grow',
  )
})
