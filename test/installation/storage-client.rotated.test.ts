// Calls each method of the published storage clients at a tenant's URL, through the gateway and a runtime in its own process.
import t from 'tap'
import { actors, policies } from '#test/storage/support/client-outcomes.ts'
import { checkCalls } from '#test/storage/support/check-calls.ts'
import { versions } from '#test/storage/support/storage-clients.ts'
import { startPlatform } from '#test/support/platform.ts'
import { signToken } from '#test/support/runtime.ts'

t.test('A tenant of the platform serves the storage clients', { timeout: 180_000 }, async (t) => {
  const platform = await startPlatform()
  t.teardown(() => platform.stop())
  await platform.startControlPlane()
  const { status, body } = await platform.call(
    'POST',
    '/v1/tenants',
    { name: 'acme', plan: 'Free', region: 'local' },
    { prefer: 'wait=30' },
  )
  if (status !== 201) throw new Error(JSON.stringify(body))
  const keys = body['keys'] as { secret_key: string; publishable_key: string; jwt_secret: string }
  const tenancy = {
    url: `${platform.gatewayUrl}/t/acme`,
    secretKey: keys.secret_key,
    publishableKey: keys.publishable_key,
    token: (sub: string) =>
      signToken({ sub, role: 'authenticated', exp: Math.floor(Date.now() / 1000) + 3600 }, keys.jwt_secret),
  }
  for (const [n, version] of versions.entries()) {
    // Each caller uses another policy; other tests try all of them without the gateway.
    for (const [actor, caller] of actors.entries()) {
      const policy = policies[(n + actor) % policies.length] ?? 'public'
      await t.test(`${version}, ${caller}, ${policy} buckets`, (t) =>
        checkCalls(t, tenancy, version, policy, actor, `${policy}-${actor}-${n}`),
      )
    }
  }
})
