// The keys of a tenant's tokens are replaced with an overlap while its clients send requests: public keys of each algorithm, and
// the secret. No request fails, and the old keys are dead after the overlap.
import { generateKeyPairSync, randomUUID, sign, type KeyObject } from 'node:crypto'
import t from 'tap'
import { effort } from '#test/support/effort.ts'
import { startPlatform } from '#test/support/platform.ts'
import { signToken } from '#test/support/sign-token.ts'
import { until } from '#test/support/until.ts'
import { create, startLoad } from './support/load.ts'

const rounds = effort({ small: 2, full: 50 })
const wait = { prefer: 'wait=60' }
/** More than a rotation takes on a busy machine. */
const overlapSeconds = 15

const generators = {
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  EdDSA: () => generateKeyPairSync('ed25519'),
}
type Algorithm = keyof typeof generators
const algorithms = Object.keys(generators) as Algorithm[]

interface SigningKey {
  alg: Algorithm
  kid: string
  privateKey: KeyObject
  publicKey: KeyObject
}

const newKey = (alg: Algorithm): SigningKey => ({ alg, kid: randomUUID(), ...generators[alg]() })
const jwkOf = ({ kid, alg, publicKey }: SigningKey) => ({ kid, alg, ...publicKey.export({ format: 'jwk' }) })
const claims = () => ({ sub: 'ada', role: 'authenticated', exp: Math.floor(Date.now() / 1000) + 3600 })
const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

function tokenOf({ alg, kid, privateKey }: SigningKey): string {
  const text = `${part({ alg, kid })}.${part(claims())}`
  const key = { key: privateKey, dsaEncoding: 'ieee-p1363' as const }
  return `${text}.${sign(alg === 'EdDSA' ? undefined : 'sha256', Buffer.from(text), key).toString('base64url')}`
}

t.test('The keys of tokens are replaced under load', { timeout: 600_000 }, async (t) => {
  const platform = await startPlatform()
  t.teardown(() => platform.stop())
  await platform.startControlPlane()
  const [tenant, neighbour] = [await create(platform, 'acme'), await create(platform, 'other')]
  const publish = async (keys: readonly SigningKey[]) => {
    const { status, body } = await platform.call(
      'PUT',
      `/v1/tenants/${tenant.id}/jwks`,
      { keys: keys.map(jwkOf) },
      wait,
    )
    t.match([status, body], [200, { operation: { state: 'succeeded' } }])
  }
  const rotateSecret = async () => {
    const { status, body } = await platform.call(
      'POST',
      `/v1/tenants/${tenant.id}/keys/rotate`,
      { kinds: ['jwt_secret'], overlap_seconds: overlapSeconds },
      wait,
    )
    t.match([status, body], [200, { operation: { state: 'succeeded' } }])
    return String((body['keys'] as Record<string, string>)['jwt_secret'])
  }
  const send = (key: string, name = 'acme') => platform.tenantCall(name, 'GET', '/storage/v1/bucket', { key })
  const statusOf = async (key: string, name?: string) => {
    const response = await send(key, name)
    await response.body?.cancel()
    return response.status
  }

  let keys = algorithms.map(newKey)
  let secret = await rotateSecret()
  await publish(keys)
  const tokens = () => [...keys.map(tokenOf), signToken(claims(), secret)]
  const requests = startLoad((n) => send(tokens()[n % (algorithms.length + 1)] ?? ''))
  /** Waits until the requests that were signed before have ended. */
  const settled = () => {
    const { sent } = requests.load
    return until(() => requests.load.sent >= sent + 8, 'further requests')
  }

  for (let round = 0; round < rounds; round++) {
    const old = { keys, tokens: tokens() }
    const next = algorithms.map(newKey)
    await publish([...old.keys, ...next])
    keys = next
    secret = await rotateSecret()
    for (const token of [...old.tokens, ...tokens()])
      t.equal(await statusOf(token), 200, 'both are valid during the overlap')
    await settled()
    await publish(next)
    for (const [index, alg] of algorithms.entries())
      t.equal(await statusOf(old.tokens[index] ?? ''), 401, `the old ${alg} key is dead`)
    const [ofSecret = ''] = old.tokens.slice(-1)
    await until(async () => (await statusOf(ofSecret)) === 401, 'the end of the old secret')
    for (const token of tokens()) t.equal(await statusOf(token, neighbour.name), 401, 'no key is valid for a neighbour')
  }
  t.match((await platform.call('GET', '/v1/audit?limit=1')).body, {
    entries: [{ action: 'tenant.set_jwks', target: tenant.id, detail: { kids: keys.map(({ kid }) => kid) } }],
  })
  await requests.stop(t)
})
