// Tokens that the tenant's own service signs with a private key: which are accepted, and which are rejected before any statement.
import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import type { PublicKey } from '@tenantry/contract'
import t from 'tap'
import { send, signToken, startRuntime } from '#test/support/runtime.ts'

const path = '/storage/v1/bucket'
const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

interface Pair {
  alg: PublicKey['alg']
  privateKey: KeyObject
  publicKey: KeyObject
}

const rsa = (modulusLength = 2048): Pair => ({ alg: 'RS256', ...generateKeyPairSync('rsa', { modulusLength }) })
const ec = (): Pair => ({ alg: 'ES256', ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) })
const ed = (): Pair => ({ alg: 'EdDSA', ...generateKeyPairSync('ed25519') })

const jwkOf = ({ alg, publicKey }: Pair, kid: string): PublicKey => {
  const { kty = '', ...members } = publicKey.export({ format: 'jwk' })
  return { kid, alg, kty, ...(members as Partial<PublicKey>) }
}

const signed = ({ alg, privateKey }: Pair, claims: object, header: object = {}, hash = 'sha256') => {
  const text = `${part({ alg, ...header })}.${part(claims)}`
  const signature = sign(alg === 'EdDSA' ? undefined : hash, Buffer.from(text), {
    key: privateKey,
    dsaEncoding: 'ieee-p1363',
  })
  return `${text}.${signature.toString('base64url')}`
}

t.test("Tokens of a tenant's public keys", async (t) => {
  const runtime = await startRuntime(t)
  const pairs = [rsa(), ec(), ed()]
  const [first, second, third] = pairs
  if (first === undefined || second === undefined || third === undefined) throw new Error('three pairs')
  const secret = 's'.repeat(40)
  const tenant = await runtime.addTenant({ name: 'acme', jwtSecrets: [secret] })
  const other = await runtime.addTenant({ name: 'other' })
  const jwks = pairs.map((pair) => jwkOf(pair, `key-${pair.alg}`))
  tenant.change({ jwks })
  other.change({ jwks: [jwkOf(rsa(), 'key-RS256')] })
  const now = () => Math.floor(runtime.clock.now() / 1000)
  const good = (more: object = {}) => ({ sub: 'u1', role: 'authenticated', exp: now() + 3600, ...more })
  const kidOf = ({ alg }: Pair) => ({ kid: `key-${alg}` })
  const bucketsOf = async (token: string, { port } = tenant) => {
    const { status, text } = await send(port, 'GET', path, { authorization: `Bearer ${token}` })
    return status === 200 ? (JSON.parse(text) as { name: string }[]).map(({ name }) => name) : status
  }
  for (const policy of ['private', 'public'] as const) {
    const body = { name: `${policy}-of-u1`, policy }
    t.equal((await tenant.request('POST', path, { as: 'u1', body })).status, 201)
  }

  t.test('are accepted in the roles that they name', async (t) => {
    for (const pair of pairs) {
      const { alg } = pair
      const token = (claims: object, header: object = kidOf(pair)) => signed(pair, claims, header)
      t.same(await bucketsOf(token(good())), ['private-of-u1', 'public-of-u1'], `${alg}: a user`)
      t.same(await bucketsOf(token(good({ sub: 'u2' }))), ['public-of-u1'], `${alg}: another user`)
      t.same(await bucketsOf(token(good({ role: 'anon' }))), ['public-of-u1'], `${alg}: anonymous`)
      t.ok((await bucketsOf(token(good({ role: 'service_role' })))).toString().includes('system'), `${alg}: service`)
      t.same(
        await bucketsOf(token(good(), {})),
        ['private-of-u1', 'public-of-u1'],
        `${alg}: the only key without a kid`,
      )
      t.same(await bucketsOf(token(good({ aud: tenant.id, iss: 'acme' }))), ['private-of-u1', 'public-of-u1'], alg)
    }
    t.same(await bucketsOf(signToken(good(), secret)), ['private-of-u1', 'public-of-u1'], "the secret's tokens, too")
  })

  t.test('are rejected without SQL when anything is wrong', async (t) => {
    const bad: Record<string, string> = {}
    for (const pair of pairs) {
      const { alg, publicKey } = pair
      const kid = kidOf(pair)
      const jwk = publicKey.export({ format: 'jwk' })
      const make = pair === first ? rsa : pair === second ? ec : ed
      const whole = signed(pair, good(), kid)
      const [head = '', , mac = ''] = whole.split('.')
      Object.assign(bad, {
        [`${alg}: another key of the same kid`]: signed(make(), good(), kid),
        [`${alg}: an unknown kid`]: signed(pair, good(), { kid: 'key-x' }),
        [`${alg}: a kid that is a path`]: signed(pair, good(), { kid: '../key-RS256' }),
        [`${alg}: a kid that is a number`]: signed(pair, good(), { kid: 1 }),
        [`${alg}: the kid null`]: signed(pair, good(), { kid: null }),
        [`${alg}: jku`]: signed(pair, good(), { ...kid, jku: 'http://127.0.0.1:1/keys' }),
        [`${alg}: x5u`]: signed(pair, good(), { ...kid, x5u: 'http://127.0.0.1:1/keys' }),
        [`${alg}: its own jwk`]: signed(pair, good(), { ...kid, jwk }),
        [`${alg}: another jwk`]: signed(make(), good(), { ...kid, jwk: make().publicKey.export({ format: 'jwk' }) }),
        [`${alg}: crit`]: signed(pair, good(), { ...kid, crit: ['exp'] }),
        [`${alg}: alg none`]: `${part({ alg: 'none', ...kid })}.${part(good())}.`,
        [`${alg}: expired`]: signed(pair, good({ exp: now() - 1 }), kid),
        [`${alg}: no exp`]: signed(pair, { sub: 'u1' }, kid),
        [`${alg}: another audience`]: signed(pair, good({ aud: other.id }), kid),
        [`${alg}: an unknown role`]: signed(pair, good({ role: 'postgres' }), kid),
        [`${alg}: another payload`]: `${head}.${part(good({ sub: 'eve', role: 'service_role' }))}.${mac}`,
        [`${alg}: HMAC with the public key`]: signToken(good(), publicKey.export({ type: 'spki', format: 'pem' }), {
          alg: 'HS256',
          ...kid,
        }),
        [`${alg}: HMAC with the JWK`]: signToken(good(), JSON.stringify(jwk), { alg: 'HS256', ...kid }),
        [`${alg}: HMAC with the secret below the algorithm`]: signToken(good(), secret, { alg, ...kid }),
        ...Object.fromEntries(
          ['RS384', 'RS512', 'PS256', 'ES384', 'ES512', 'Ed25519', 'HS256', 'RS256', 'ES256', 'EdDSA']
            .filter((name) => name !== alg)
            .map((name) => [`${alg} called ${name}`, signed(pair, good(), { ...kid, alg: name })]),
        ),
      })
    }
    bad['RS512'] = signed(first, good(), { ...kidOf(first), alg: 'RS512' }, 'sha512')
    const before = tenant.statements()
    for (const [what, token] of Object.entries(bad)) t.equal(await bucketsOf(token), 401, what)
    t.equal(tenant.statements(), before, 'no SQL')
    t.comment(`${Object.keys(bad).length} tokens`)
    t.equal(await bucketsOf(signed(first, good(), kidOf(first)), other), 401, "another tenant's key of the same kid")
  })

  t.test('are rejected from the moment at which their key is gone', async (t) => {
    const token = signed(first, good(), kidOf(first))
    const old = rsa()
    tenant.change({ jwks: [...jwks, jwkOf(old, 'old')] })
    t.equal(await bucketsOf(signed(first, good(), {})), 401, 'two keys of an algorithm require a kid')
    t.same(await bucketsOf(signed(old, good(), { kid: 'old' })), ['private-of-u1', 'public-of-u1'])
    t.same(await bucketsOf(token), ['private-of-u1', 'public-of-u1'], 'both keys at the same time')
    tenant.change({ jwks })
    t.equal(await bucketsOf(signed(old, good(), { kid: 'old' })), 401)
    t.same(await bucketsOf(token), ['private-of-u1', 'public-of-u1'])
    tenant.change({ jwks: [] })
    t.equal(await bucketsOf(token), 401)
  })
  t.same(runtime.errors, [], 'no internal error occurred')
})
