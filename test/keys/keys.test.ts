// Platform keys: created, listed, revoked, and rotated with an overlap. Only their hashes are stored, and one admin key
// always remains.
import { createHash } from 'node:crypto'
import t from 'tap'
import { isError, newName, startApi } from '#test/support/control-plane/api.ts'

interface Key {
  id: string
  name: string
  prefix: string
  scope: string
  expires_at: string | null
  revoked_at: string | null
  replaced_by: string | null
  key: string
}

const api = await startApi(t, { control: false })
const list = async () => ((await api.call('GET', '/v1/keys')).body as { keys: Key[] }).keys
const read = async (id: string) => (await list()).find((key) => key.id === id)
const works = async (key: string) => (await api.call('GET', '/v1/plans', { key })).status
const firstId = (await list())[0]?.id ?? ''

t.test('A key is shown once, and only its hash is stored', async (t) => {
  const response = await api.call('POST', '/v1/keys', { body: { name: 'night job', scope: 'billing' } })
  const made = response.body as Key
  t.same(response.status, 201)
  t.match(made, {
    name: 'night job',
    scope: 'billing',
    key: /^tnp_[\w-]{43}$/,
    expires_at: null,
    revoked_at: null,
    replaced_by: null,
  })
  t.same(made.prefix, made.key.slice(0, 10))
  t.same(await works(made.key), 200)
  const { key, ...rest } = made
  t.same(await read(made.id), rest, 'the list has all but the key itself')
  const [row] = await api.sql('select *, k::text as text from platform_keys k where id = $1', [made.id])
  t.same(row?.['sha256'], createHash('sha256').update(key).digest('hex'))
  for (const table of Object.keys(await api.counts())) {
    const rows = await api.sql(`select 1 from "${table}" t where position($1 in t::text) > 0`, [key])
    t.same(rows, [], `${table} does not hold the key`)
  }
})

t.test('An invalid key is rejected with its error, and not created', async (t) => {
  const before = await api.counts()
  for (const [body, code, names] of [
    [{ scope: 'read' }, 'MISSING_FIELD', '"name"'],
    [{ name: 'a' }, 'MISSING_FIELD', '"scope"'],
    [{ name: '', scope: 'read' }, 'INVALID_FIELD', '"name"'],
    [{ name: 'x'.repeat(101), scope: 'read' }, 'INVALID_FIELD', '"name"'],
    [{ name: 'a', scope: 'root' }, 'INVALID_FIELD', '"scope" must be one of admin, read, billing'],
    [{ name: 'a', scope: 'read', key: 'tnp_mine' }, 'UNKNOWN_FIELD', '"key"'],
  ] as const) {
    isError(t, await api.call('POST', '/v1/keys', { body }), 400, code, names, JSON.stringify(body).slice(0, 60))
  }
  const tooLong = await api.call('POST', `/v1/keys/${firstId}/rotate`, { body: { overlap_seconds: 31 * 86_400 } })
  isError(t, tooLong, 400, 'INVALID_FIELD', '"overlap_seconds"', 'an overlap of 31 days')
  t.same(await api.counts(), before)
})

t.test('An Idempotency-Key creates one key, also when it is sent many times at once', async (t) => {
  const body = { name: newName('once'), scope: 'read' }
  const headers = { 'idempotency-key': newName() }
  const responses = await Promise.all(Array.from({ length: 5 }, () => api.call('POST', '/v1/keys', { body, headers })))
  const [first] = responses
  for (const response of responses) t.match(response, { status: 201, body: first?.body as object })
  const later = await api.call('POST', '/v1/keys', { body, headers })
  t.match(later, { status: 201, headers: { 'idempotency-replayed': 'true' } })
  t.same(later.body, first?.body, 'the lost response is returned again, with the key')
  t.same((await list()).filter(({ name }) => name === body.name).length, 1)
  const other = await api.call('POST', '/v1/keys', { body: { ...body, scope: 'admin' }, headers })
  isError(t, other, 409, 'IDEMPOTENCY_MISMATCH', 'Idempotency-Key', 'another scope')
  const id = (later.body as Key).id
  const rotation = { body: {}, headers: { 'idempotency-key': newName() } }
  const rotated = await api.call('POST', `/v1/keys/${id}/rotate`, rotation)
  t.same((await api.call('POST', `/v1/keys/${id}/rotate`, rotation)).body, rotated.body, 'and so is that of a rotation')
})

t.test('A revoked key ends at once, and remains in the list', async (t) => {
  const { id, key } = await api.newKey('read')
  t.same(await works(key), 200)
  const response = await api.call('DELETE', `/v1/keys/${id}`)
  t.match(response, { status: 200, body: { id, revoked_at: String } })
  isError(t, await api.call('GET', '/v1/plans', { key }), 401, 'REVOKED_KEY', 'revoked', 'its use')
  const again = await api.call('DELETE', `/v1/keys/${id}`)
  t.same(again.body, response.body, 'a second revocation does not change the first')
  t.same(await read(id), response.body)
  isError(
    t,
    await api.call('POST', `/v1/keys/${id}/rotate`, { body: {} }),
    409,
    'KEY_NOT_LIVE',
    'revoked',
    'its rotation',
  )
})

t.test('A rotated key and its successor are both live until the overlap ends', async (t) => {
  const old = await api.newKey('billing')
  const response = await api.call('POST', `/v1/keys/${old.id}/rotate`, { body: { overlap_seconds: 120 } })
  const next = response.body as Key
  t.match(response, { status: 201, body: { scope: 'billing', key: /^tnp_/, expires_at: null, replaced_by: null } })
  t.not(next.id, old.id)
  t.match(await read(old.id), { replaced_by: next.id, revoked_at: null, expires_at: String })
  t.same([await works(old.key), await works(next.key)], [200, 200], 'both')
  isError(
    t,
    await api.call('POST', `/v1/keys/${old.id}/rotate`, { body: {} }),
    409,
    'KEY_NOT_LIVE',
    'already rotated',
    'once more',
  )
  api.clock.ahead = 119_000
  t.same([await works(old.key), await works(next.key)], [200, 200], 'still')
  api.clock.ahead = 121_000
  isError(
    t,
    await api.call('GET', '/v1/plans', { key: old.key }),
    401,
    'REVOKED_KEY',
    'expired',
    'the old one after the overlap',
  )
  t.same(await works(next.key), 200)
  api.clock.ahead = 0
})

t.test('The last permanent admin key cannot be revoked, in any way', async (t) => {
  const lasts = ({ scope, revoked_at: revoked, expires_at: expires }: Key) =>
    scope === 'admin' && revoked === null && expires === null
  const others = async () => (await list()).filter(lasts)
  t.same(
    (await others()).map(({ id }) => id),
    [firstId],
  )
  isError(t, await api.call('DELETE', `/v1/keys/${firstId}`), 409, 'LAST_ADMIN_KEY', 'last admin key', 'the only one')
  const rotated = (await api.call('POST', `/v1/keys/${firstId}/rotate`, { body: { overlap_seconds: 3600 } }))
    .body as Key
  isError(
    t,
    await api.call('DELETE', `/v1/keys/${rotated.id}`),
    409,
    'LAST_ADMIN_KEY',
    'last admin key',
    'next to it there is only one that expires',
  )
  t.same(await works(rotated.key), 200)
  // A key that expires, such as the rotated one, cannot create one that does not.
  const permanent = async () => {
    const made = await api.call('POST', '/v1/keys', { key: rotated.key, body: { name: 'pair', scope: 'admin' } })
    return made.body as Key
  }
  const pair = [await permanent(), await permanent()]
  t.same((await api.call('DELETE', `/v1/keys/${rotated.id}`)).status, 200, 'with others it can be revoked')
  const responses = await Promise.all(pair.map(({ id, key }) => api.call('DELETE', `/v1/keys/${id}`, { key })))
  t.same(responses.map(({ status }) => status).sort(), [200, 409], 'of two that revoke themselves at once one remains')
  t.same((await others()).length, 1)
})
