// An invalid token is rejected with 401 before any statement; a valid token acts for the caller in its claims.
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import t, { type Test } from 'tap'
import { send, signToken, startRuntime, type TestTenant } from '#test/support/runtime.ts'

const path = '/storage/v1/bucket'

/** Checks that the response is the standard 401 and that no statement ran. */
async function rejected(t: Test, tenant: TestTenant, headers: Record<string, string>, why: string) {
  const before = tenant.statements()
  const response = await send(tenant.port, 'GET', path, headers)
  t.equal(response.status, 401, `${why}: 401`)
  t.equal(response.headers['www-authenticate'], 'Bearer', `${why}: states how to authenticate`)
  t.match(response.json(), { statusCode: '401', error: 'Unauthorized', code: 'INVALID_TOKEN', message: String })
  t.equal(tenant.statements(), before, `${why}: no SQL`)
}

t.test('Tokens', async (t) => {
  const runtime = await startRuntime(t)
  const old = randomBytes(32).toString('hex')
  const secret = randomBytes(32).toString('hex')
  const tenant = await runtime.addTenant({ name: 'acme', jwtSecrets: [secret, old] })
  const other = await runtime.addTenant({ name: 'other' })
  // Whole seconds, so that claims that differ by a second are exact.
  const now = () => Math.floor(runtime.clock.now() / 1000)
  const good = (more: Record<string, unknown> = {}) => ({
    sub: 'u1',
    role: 'authenticated',
    exp: now() + 3600,
    ...more,
  })
  const without = (name: string) => Object.fromEntries(Object.entries(good()).filter(([key]) => key !== name))
  const hs256 = { alg: 'HS256', typ: 'JWT' }
  const bucketsOf = async (headers: Record<string, string>) => {
    const { status, text } = await send(tenant.port, 'GET', path, headers)
    return status === 200 ? (JSON.parse(text) as { name: string }[]).map(({ name }) => name) : status
  }
  // The buckets that a caller sees show which caller the runtime recognized.
  for (const [caller, policy] of [
    ['u1', 'private'],
    ['u2', 'private'],
    ['u2', 'public'],
  ] as const) {
    const { status } = await tenant.request('POST', path, {
      as: caller,
      body: { name: `${policy}-of-${caller}`, policy },
    })
    t.equal(status, 201)
  }
  const seen = {
    anonymous: ['public-of-u2'],
    u1: ['private-of-u1', 'public-of-u2'],
    service: ['private-of-u1', 'private-of-u2', 'public-of-u2', 'system'],
  }

  t.test('Valid tokens are accepted', async (t) => {
    const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
    t.same(await bucketsOf({}), seen.anonymous, 'none at all: anonymous')
    t.same(await bucketsOf(bearer(signToken(good(), secret))), seen.u1, 'the newest secret')
    t.same(await bucketsOf(bearer(signToken(good(), old))), seen.u1, 'the secret before it, while both are live')
    t.same(await bucketsOf({ authorization: `bearer ${signToken(good(), secret)}` }), seen.u1, 'the scheme in any case')
    t.same(await bucketsOf(bearer(signToken(without('role'), secret))), seen.u1, 'without a role: a signed-in user')
    t.same(
      await bucketsOf(bearer(signToken(good({ aud: 'authenticated', iss: tenant.id }), secret))),
      seen.u1,
      'audience and issuer of the tenant',
    )
    t.same(
      await bucketsOf(bearer(signToken(good({ aud: ['x', 'acme'], iss: 'acme' }), secret))),
      seen.u1,
      'one audience of several',
    )
    t.same(await bucketsOf(bearer(signToken(good({ nbf: now() - 1 }), secret))), seen.u1, 'valid since a second')
    t.same(
      await bucketsOf(bearer(signToken(good(), secret, { ...hs256, kid: '../../dev/null' }))),
      seen.u1,
      'a kid is ignored',
    )
    t.same(await bucketsOf(bearer(signToken({ role: 'anon', exp: now() + 60 }, secret))), seen.anonymous, 'role anon')
    t.same(
      await bucketsOf(bearer(signToken({ role: 'service_role', exp: now() + 60 }, secret))),
      seen.service,
      'role service_role',
    )
    t.same(await bucketsOf(bearer(tenant.secretKey)), seen.service, 'the secret key as bearer')
    t.same(await bucketsOf({ apikey: tenant.secretKey }), seen.service, 'the secret key as apikey')
    t.same(
      await bucketsOf({ apikey: tenant.secretKey, ...bearer(tenant.secretKey) }),
      seen.service,
      'the secret key as both',
    )
    t.same(
      await bucketsOf({ apikey: tenant.publishableKey, ...bearer(tenant.publishableKey) }),
      seen.anonymous,
      'the publishable key as both',
    )
    t.same(await bucketsOf(bearer(tenant.publishableKey)), seen.anonymous, 'the publishable key as bearer')
    t.same(
      await bucketsOf({ apikey: tenant.publishableKey, ...bearer(signToken(good(), secret)) }),
      seen.u1,
      'a user with the publishable key',
    )
    t.same(
      await bucketsOf({ apikey: tenant.secretKey, ...bearer(signToken(good(), secret)) }),
      seen.u1,
      'the token takes precedence over the secret key: only the user',
    )
    t.same(
      await bucketsOf({ apikey: other.secretKey }),
      seen.anonymous,
      "another tenant's secret key is anonymous here",
    )
    t.same(await bucketsOf({ apikey: tenant.secretKey.slice(0, -1) }), seen.anonymous, 'a shortened key is anonymous')
    const { data, error } = await tenant.client('u1').storage.listBuckets()
    t.same([error, data?.map(({ name }) => name)], [null, seen.u1], 'supabase-js as a user')
    const padded = signToken(good({ padding: 'x'.repeat(5_800) }), secret)
    t.ok(padded.length > 7_900 && padded.length <= 8_192)
    t.same(await bucketsOf(bearer(padded)), seen.u1, 'a long token')
  })

  t.test('Invalid tokens are rejected', async (t) => {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const rs256 = (header: object) => {
      const text = [{ alg: 'RS256', ...header }, good()]
        .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
        .join('.')
      return `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}`
    }
    const jwk = publicKey.export({ format: 'jwk' })
    const whole = signToken(good(), secret)
    const [head = '', body = '', mac = ''] = whole.split('.')
    const forged = Buffer.from(JSON.stringify(good({ sub: 'u2' }))).toString('base64url')
    const own = { kty: 'oct', k: Buffer.from('mine').toString('base64url') }
    const bad: Record<string, string> = {
      'alg none': `${Buffer.from('{"alg":"none"}').toString('base64url')}.${body}.`,
      'alg None, with a signature': signToken(good(), secret, { alg: 'None' }),
      'alg missing': signToken(good(), secret, { typ: 'JWT' }),
      'alg a list': signToken(good(), secret, { alg: ['HS256'] }),
      'HS384 with the right secret': signToken(good(), secret, { alg: 'HS384' }),
      'HS512 with the right secret': signToken(good(), secret, { alg: 'HS512' }),
      'RS256 in the header, HMAC below': signToken(good(), secret, { alg: 'RS256' }),
      'RS256 with a key of its own': rs256({}),
      'RS256 with a key of its own, sent along': rs256({ jwk }),
      'wrong secret': signToken(good(), `${secret}x`),
      'empty secret': signToken(good(), ''),
      "another tenant's token": other.token('u1'),
      "another tenant's secret key": other.secretKey,
      'expired a second ago': signToken(good({ exp: now() - 1 }), secret),
      'expired long ago, by the former secret': signToken(good({ exp: 1 }), old),
      'not before a minute from now': signToken(good({ nbf: now() + 60 }), secret),
      'no exp': signToken(without('exp'), secret),
      'exp a text': signToken(good({ exp: String(now() + 60) }), secret),
      'no sub': signToken(without('sub'), secret),
      'sub empty': signToken(good({ sub: '' }), secret),
      'sub a number': signToken(good({ sub: 1 }), secret),
      'sub with a NUL': signToken(good({ sub: 'u1\0' }), secret),
      'sub of 256 characters': signToken(good({ sub: 'u'.repeat(256) }), secret),
      'wrong aud': signToken(good({ aud: 'another' }), secret),
      'aud an empty list': signToken(good({ aud: [] }), secret),
      'aud null': signToken(good({ aud: null }), secret),
      "another tenant's aud": signToken(good({ aud: other.id }), secret),
      'wrong iss': signToken(good({ iss: 'https://evil.example' }), secret),
      'iss null': signToken(good({ iss: null }), secret),
      'unknown role': signToken(good({ role: 'postgres' }), secret),
      'role in capitals': signToken(good({ role: 'SERVICE_ROLE' }), secret),
      'role a list': signToken(good({ role: ['service_role'] }), secret),
      'role empty': signToken(good({ role: '' }), secret),
      'jwk of its own': signToken(good(), 'mine', { ...hs256, jwk: own }),
      'jwk in addition to the right secret': signToken(good(), secret, { ...hs256, jwk: own }),
      jku: signToken(good(), secret, { ...hs256, jku: 'http://127.0.0.1:1/keys' }),
      x5u: signToken(good(), secret, { ...hs256, x5u: 'http://127.0.0.1:1/keys' }),
      x5c: signToken(good(), secret, { ...hs256, x5c: ['MII='] }),
      crit: signToken(good(), secret, { ...hs256, crit: ['exp'] }),
      'b64 false': signToken(good(), secret, { ...hs256, b64: false, crit: ['b64'] }),
      'kid of an empty file': signToken(good(), '', { ...hs256, kid: '/dev/null' }),
      'kid with SQL': signToken(good(), 'mine', { ...hs256, kid: "x' union select 'mine" }),
      'payload of another user': `${head}.${forged}.${mac}`,
      'truncated by a letter': whole.slice(0, -1),
      'without its signature': `${head}.${body}.`,
      'two parts': `${head}.${body}`,
      'one part': head,
      'four parts': `${whole}.${mac}`,
      'five parts': `${whole}..`,
      'header no JSON': `${Buffer.from('{alg').toString('base64url')}.${body}.${mac}`,
      'payload that is not an object': signToken('[]', secret),
      'payload that is not JSON': signToken('exp', secret),
      'payload null': signToken('null', secret),
      'nine kilobytes': signToken(good({ padding: 'x'.repeat(6_700) }), secret),
      'only dots': '..',
    }
    t.ok((bad['nine kilobytes'] ?? '').length > 9_000)
    for (const [why, token] of Object.entries(bad)) await rejected(t, tenant, { authorization: `Bearer ${token}` }, why)
    await rejected(
      t,
      tenant,
      { authorization: `Bearer ${bad['wrong secret'] ?? ''}`, apikey: tenant.secretKey },
      'a bad token in addition to the secret key',
    )
    const isAlike = bad['wrong secret'] ?? ''
    await rejected(t, tenant, { authorization: `Bearer ${isAlike}`, apikey: isAlike }, 'a bad token as apikey too')
  })

  t.test('Tokens with any bit of the signature flipped are rejected', async (t) => {
    const [head = '', body = '', mac = ''] = signToken(good(), secret).split('.')
    const before = tenant.statements()
    const passed: number[] = []
    const bytes = Buffer.from(mac, 'base64url')
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const flipped = Buffer.from(bytes)
      flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
      const { status } = await send(tenant.port, 'GET', path, {
        authorization: `Bearer ${head}.${body}.${flipped.toString('base64url')}`,
      })
      if (status !== 401) passed.push(bit)
    }
    t.same(passed, [])
    t.equal(bytes.length, 32)
    t.equal(tenant.statements(), before, 'no SQL')
  })

  t.test('Tokens in a malformed header are rejected', async (t) => {
    const token = signToken(good(), secret)
    const headers = [
      '',
      'Bearer',
      'Bearer ',
      `Bearer${token}`,
      token,
      `Basic ${token}`,
      `Bearer ${token} more`,
      `Bearer ${token}, Bearer ${token}`,
      `Token ${token}`,
      'Basic dTpw',
    ]
    for (const authorization of headers)
      await rejected(t, tenant, { authorization }, JSON.stringify(authorization.replace(token, '<token>')))
  })

  t.test('Valid tokens are rejected after they expire or their secret is removed', async (t) => {
    const authorization = `Bearer ${signToken(good({ exp: now() + 100 }), secret)}`
    t.same(await bucketsOf({ authorization }), seen.u1)
    runtime.clock.ahead = 100_000
    await rejected(t, tenant, { authorization }, 'a known token expires')
    runtime.clock.ahead = 0
    const former = `Bearer ${signToken(good(), old)}`
    // The control plane may be away when an overlap ends.
    const end = new Date(runtime.clock.now() + 50_000).toISOString()
    const [live] = tenant.manifest.keys
    tenant.change({
      jwt_secret_expiries: [null, end],
      keys: tenant.manifest.keys.map((one) => ({ ...one, expires_at: end })),
    })
    t.same(await bucketsOf({ authorization: former }), seen.u1, 'during the overlap')
    t.same(await bucketsOf({ apikey: tenant.secretKey }), seen.service)
    runtime.clock.ahead = 51_000
    await rejected(t, tenant, { authorization: former }, 'signed with a secret whose overlap has ended')
    t.same(await bucketsOf({ apikey: tenant.secretKey }), seen.anonymous, 'a key whose overlap has ended is anonymous')
    t.same(await bucketsOf({ authorization: `Bearer ${signToken(good(), secret)}` }), seen.u1, 'the newest secret')
    runtime.clock.ahead = 0
    tenant.change({ jwt_secret_expiries: [null, null], keys: live === undefined ? [] : [live] })
    const key = { apikey: tenant.secretKey }
    t.same(await bucketsOf({ authorization: former }), seen.u1)
    tenant.change({ jwt_secrets: [secret], keys: [] })
    await rejected(t, tenant, { authorization: former }, 'signed with a removed secret')
    t.same(await bucketsOf({ authorization: `Bearer ${signToken(good(), secret)}` }), seen.u1)
    t.same(await bucketsOf(key), seen.anonymous, 'a removed key is anonymous')
  })

  t.test('An unknown API key is rejected with a message that states this, in either header', async (t) => {
    for (const kind of ['secret', 'publishable'] as const) {
      const key = `tn_${kind}_${randomBytes(32).toString('base64url')}`
      const sha256 = createHash('sha256').update(key).digest('hex')
      const authorization = `Bearer ${key}`
      const ways: Record<string, string>[] = [{ authorization }, { apikey: key }, { apikey: key, authorization }]
      tenant.change({ keys: [{ kind, sha256 }] })
      for (const headers of ways) t.same(await bucketsOf(headers), kind === 'secret' ? seen.service : seen.anonymous)
      tenant.change({ keys: [] })
      other.change({ keys: [{ kind, sha256 }] })
      const before = tenant.statements()
      for (const headers of ways) {
        const response = await send(tenant.port, 'GET', path, headers)
        t.same([response.status, response.headers['www-authenticate']], [401, 'Bearer'])
        const message = `Unknown ${kind} API key: it was rotated, or it is not a key of this tenant.`
        t.match(response.json(), { code: 'INVALID_TOKEN', message }, 'the same for a key of another tenant')
        t.notMatch(response.text, key)
      }
      t.equal(tenant.statements(), before, 'no SQL')
      t.same(
        await bucketsOf({ apikey: key, authorization: `Bearer ${signToken(good(), secret)}` }),
        seen.u1,
        'a bearer token takes precedence',
      )
    }
  })

  t.test('Insufficient credentials get 401 for an anonymous caller and 403 for a user, without SQL', async (t) => {
    const before = tenant.statements()
    t.equal((await tenant.request('POST', path, { body: { name: 'mine' } })).status, 401)
    t.equal((await tenant.request('POST', '/admin/reload-schemas')).status, 401)
    t.equal((await tenant.request('POST', '/admin/reload-schemas', { as: 'u1' })).status, 403)
    t.equal(tenant.statements(), before)
  })

  t.test('Internal headers of a client do not change the tenant or the caller', async (t) => {
    const { status } = await send(tenant.port, 'GET', path, {
      'x-tenantry-tenant': other.id,
      'x-tenantry-internal': 'guess',
    })
    t.equal(status, 200, "the gateway's own headers replace them")
    t.same(await bucketsOf({ 'x-tenantry-tenant': other.id }), seen.anonymous, 'and the tenant is this one')
  })

  t.same(runtime.errors, [], 'no internal error occurred')
})
