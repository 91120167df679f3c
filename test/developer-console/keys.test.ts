// The list of a tenant's keys at its own URL: what it contains, and which callers may read it.
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'

const runtime = await startRuntime(t)
const tenant = await runtime.addTenant()

interface KeysBody {
  keys: { name: string; kind: string; prefix: string | null; last_used_at: string | null }[]
  uses_known_since: string
  jwt_secrets: Record<string, unknown>[]
  public_keys: Record<string, unknown>[]
}

async function read(): Promise<KeysBody> {
  const response = await tenant.request('GET', '/keys/v1', { as: 'service' })
  t.same(response.status, 200)
  return response.json() as unknown as KeysBody
}

const times = { created_at: '2026-01-02T03:04:05.000Z' }

t.test('Only the service role reads the keys, and no value is in them', async (t) => {
  t.match(await tenant.request('GET', '/keys/v1'), { status: 401 })
  t.match(await tenant.request('GET', '/keys/v1', { as: 'ada' }), { status: 403 })
  tenant.change({
    keys: tenant.manifest.keys.map((key) => ({ ...key, prefix: `tn_${key.kind}_abcd`, ...times })),
    jwt_secret_creations: ['2026-01-02T03:04:05.000Z'],
    jwks: [{ kid: 'one', alg: 'ES256', kty: 'EC', crv: 'P-256', x: 'x', y: 'y' }],
  })
  const response = await tenant.request('GET', '/keys/v1', { as: 'service' })
  t.match(response.headers, { 'cache-control': 'no-store' })
  const { keys, jwt_secrets: secrets, public_keys: publicKeys } = response.json() as unknown as KeysBody
  t.match(keys, [
    { name: 'secret_key', kind: 'secret', prefix: 'tn_secret_abcd', ...times, expires_at: null },
    { name: 'publishable_key', kind: 'publishable', prefix: 'tn_publishable_abcd', ...times, expires_at: null },
  ])
  t.same(secrets, [{ algorithm: 'HS256', ...times, expires_at: null }])
  t.same(publicKeys, [{ kid: 'one', algorithm: 'ES256' }])
  const { keys: known, jwt_secrets: texts, signing_secret: signing, home } = tenant.manifest
  for (const secret of [
    tenant.secretKey,
    tenant.publishableKey,
    ...known.map(({ sha256 }) => sha256),
    ...texts,
    signing,
  ])
    t.notOk(response.text.includes(secret))
  t.notOk(response.text.includes(new URL(home.url).password))
})

t.test('The last use is that of the key alone, and stays when the tenant changes', async (t) => {
  const uses = async () => Object.fromEntries((await read()).keys.map((key) => [key.kind, key.last_used_at]))
  runtime.clock.stopped = Date.parse('2030-01-01T00:00:00.000Z')
  t.same(await uses(), { secret: '2030-01-01T00:00:00.000Z', publishable: null })
  runtime.clock.stopped += 60_000
  await tenant.request('GET', '/storage/v1/bucket', { headers: { apikey: tenant.publishableKey } })
  // A token is not a use of a key.
  await tenant.request('GET', '/storage/v1/bucket', { as: 'ada' })
  tenant.change({})
  const after = await uses()
  t.same(after, { secret: '2030-01-01T00:01:00.000Z', publishable: '2030-01-01T00:01:00.000Z' })
  t.ok((await read()).uses_known_since < '2030')
  runtime.clock.stopped = undefined
})

t.test('A rotated key is listed until it ends; a manifest of an earlier version has no times', async (t) => {
  const [secret, publishable] = tenant.manifest.keys
  if (secret === undefined || publishable === undefined) throw new Error('The tenant has no keys.')
  const end = new Date(runtime.clock.now() + 60_000).toISOString()
  const former = { kind: 'publishable' as const, sha256: '0'.repeat(64), expires_at: end }
  tenant.change({ keys: [secret, { kind: 'publishable', sha256: publishable.sha256 }, former] })
  t.match((await read()).keys, [
    {},
    { name: 'publishable_key', prefix: null, created_at: null, expires_at: null },
    { name: 'publishable_key', expires_at: end },
  ])
  runtime.clock.ahead += 61_000
  t.same((await read()).keys.length, 2)
})
