// The API stores the public keys of a tenant's tokens, and rejects every key that is not one.
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import t from 'tap'
import { isError, startApi } from '#test/support/control-plane/api.ts'

const api = await startApi(t)
const jwk = (pair: { publicKey: KeyObject }, kid: string) => ({
  kid,
  ...pair.publicKey.export({ format: 'jwk' }),
})
const rsa = jwk(generateKeyPairSync('rsa', { modulusLength: 2048 }), 'one')
const ec = jwk(generateKeyPairSync('ec', { namedCurve: 'P-256' }), 'two')
const ed = jwk(generateKeyPairSync('ed25519'), 'three')

t.test('Public keys are stored, published and removed', async (t) => {
  const { tenant_id: id } = await api.create()
  const path = `/v1/tenants/${id}/jwks`
  const put = (keys: object[]) => api.call('PUT', path, { body: { keys }, headers: { prefer: 'wait=30' } })
  const published = async () => (await api.published.some(new Set([id])))[0]?.manifest?.jwks
  t.match(await api.call('GET', path), { status: 200, body: { tenant_id: id, keys: [] } })
  const more = { use: 'sig', alg: 'RS256', key_ops: ['verify'], x5c: ['MII='], x5t: 'abc' }
  const stored = [
    { ...rsa, alg: 'RS256' },
    { ...ec, alg: 'ES256' },
    { ...ed, alg: 'EdDSA' },
  ]
  const response = await put([{ ...rsa, ...more }, ec, ed])
  t.match(response, { status: 200, body: { tenant_id: id, operation: { kind: 'update', state: 'succeeded' } } })
  t.same((response.body as { keys: object }).keys, stored, 'each with its only algorithm, without the other members')
  t.same((await api.call('GET', path)).body, { tenant_id: id, keys: stored })
  t.same(await published(), stored)
  const [entry] = ((await api.call('GET', '/v1/audit?limit=1')).body as { entries: object[] }).entries
  t.match(entry, { action: 'tenant.set_jwks', target: id, detail: { kids: ['one', 'two', 'three'] } })
  t.equal((await put([])).status, 200)
  t.same(await published(), [])
})

t.test('Keys that are not valid public keys are rejected, and nothing changes', async (t) => {
  const { tenant_id: id, generation } = await api.create()
  const pair = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const curve = (namedCurve: string) => jwk(generateKeyPairSync('ec', { namedCurve }), 'k')
  const bits = (modulusLength: number) => jwk(generateKeyPairSync('rsa', { modulusLength }), 'k')
  const { n, ...withoutN } = rsa
  const cases: [what: string, key: object, names: string][] = [
    ['a private RSA key', { kid: 'k', ...pair.privateKey.export({ format: 'jwk' }) }, 'keys[0].d'],
    ['a private member', { ...ed, d: 'AAAA' }, 'keys[0].d'],
    ['a symmetric key', { kid: 'k', kty: 'oct', k: 'c2VjcmV0' }, 'keys[0].k'],
    ['no kid', { ...rsa, kid: undefined }, 'keys[0].kid'],
    ['an empty kid', { ...rsa, kid: '' }, 'keys[0].kid'],
    ['a kid with a space', { ...rsa, kid: 'a b' }, 'keys[0].kid'],
    ['a long kid', { ...rsa, kid: 'k'.repeat(101) }, 'keys[0].kid'],
    ['a kid that is a number', { ...rsa, kid: 1 }, 'keys[0].kid'],
    ['no kty', { kid: 'k' }, 'keys[0].kty'],
    ['an unknown kty', { ...rsa, kty: 'constructor' }, 'keys[0].kty'],
    ['another algorithm', { ...rsa, alg: 'RS512' }, 'keys[0].alg'],
    ['the algorithm of another type', { ...ec, alg: 'RS256' }, 'keys[0].alg'],
    ['HS256 for a public key', { ...rsa, alg: 'HS256' }, 'keys[0].alg'],
    ['alg none', { ...rsa, alg: 'none' }, 'keys[0].alg'],
    ['a key for encryption', { ...rsa, use: 'enc' }, 'keys[0].use'],
    ['key_ops without verify', { ...rsa, key_ops: ['encrypt'] }, 'keys[0].key_ops'],
    ['another curve', curve('P-384'), 'keys[0].crv'],
    ['the curve of Bitcoin', curve('secp256k1'), 'keys[0].crv'],
    ['X25519', jwk(generateKeyPairSync('x25519'), 'k'), 'keys[0].crv'],
    ['no curve', { ...ec, crv: undefined }, 'keys[0].crv'],
    ['no modulus', withoutN, 'keys[0].n'],
    ['a modulus with padding', { ...rsa, n: `${n}=` }, 'keys[0].n'],
    ['a modulus that is a number', { ...rsa, n: 7 }, 'keys[0].n'],
    ['a small modulus', bits(1024), 'keys[0].n'],
    ['a large modulus', { ...rsa, n: Buffer.alloc(1024, 255).toString('base64url') }, 'keys[0].n'],
    ['another exponent', { ...rsa, e: 'Aw' }, 'keys[0].e'],
    ['a point that is not on the curve', { ...ec, y: ec.x }, 'keys[0]'],
    ['a short point', { ...ed, x: 'AAAA' }, 'keys[0]'],
    ['a long key', { ...rsa, x5c: ['A'.repeat(5_000)] }, 'keys[0]'],
  ]
  const put = (body: unknown) => api.call('PUT', `/v1/tenants/${id}/jwks`, { body })
  for (const [what, key, names] of cases) isError(t, await put({ keys: [key] }), 400, 'INVALID_FIELD', names, what)
  isError(
    t,
    await put({ keys: [rsa, { ...ec, kid: 'one' }] }),
    400,
    'INVALID_FIELD',
    'keys[1].kid',
    'the same kid twice',
  )
  const nine = Array.from({ length: 9 }, (_, at) => ({ ...ed, kid: `k${at}` }))
  isError(t, await put({ keys: nine }), 400, 'INVALID_FIELD', 'keys', 'nine keys')
  isError(t, await put({ keys: ['text'] }), 400, 'INVALID_FIELD', 'keys', 'a text')
  isError(t, await put({ keys: [], more: 1 }), 400, 'UNKNOWN_FIELD', 'more', 'an unknown field')
  isError(t, await put({}), 400, 'MISSING_FIELD', 'keys', 'no keys')
  t.equal((await api.tenant(id)).generation, generation)
  const none = await api.call('GET', '/v1/tenants/t_00000000000000000000/jwks')
  isError(t, none, 404, 'TENANT_NOT_FOUND', 'tenant', 'no tenant')
})
