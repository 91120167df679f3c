// Signed URLs that anonymous callers create: they last at most an hour, and only while the bucket is public.
import t from 'tap'
import { send, startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { bucket } from './support/objects.ts'
import { put } from './support/signed-urls.ts'

const sign = (tenant: TestTenant, as: string | undefined, seconds?: number) =>
  tenant.request(
    'POST',
    `/storage/v1/object/sign/open/x${seconds === undefined ? '' : `?expires_in=${String(seconds)}`}`,
    { as },
  )

t.test('Signed URLs of anonymous callers', async (t) => {
  const runtime = await startRuntime(t, { storageLimits: { signedSeconds: 7_200 } })
  const tenant = await runtime.addTenant()
  await bucket(tenant, 'open', { policy: 'public' })
  await put(tenant, 'open/x', 'x')
  runtime.clock.stopped = Date.UTC(2026, 10, 20, 12)
  t.teardown(() => (runtime.clock.stopped = undefined))
  const hour = { expires_at: '2026-11-20T13:00:00.000Z' }

  t.test('They last at most an hour', async (t) => {
    t.match((await sign(tenant, undefined)).json(), hour, 'by default, although the default of others is longer')
    t.match((await sign(tenant, undefined, 3_600)).json(), hour)
    const rejected = await sign(tenant, undefined, 3_601)
    t.equal(rejected.status, 400)
    t.match(rejected.json(), {
      message:
        'Parameter "expires_in" must be a whole number of seconds from 1 to 3600 for a caller that is not signed in.',
    })
    const many = await tenant.request('POST', '/storage/v1/object/sign/open', {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ expiresIn: 3_601, paths: ['x'] }),
    })
    t.equal(many.status, 400)
    t.match((await sign(tenant, 'u1', 86_400)).json(), { expires_at: '2026-11-21T12:00:00.000Z' }, 'others may')
  })

  t.test('They expire when the bucket is no longer public, and those of others do not', async (t) => {
    const url = async (as: string | undefined) => String((await sign(tenant, as)).json()['url'])
    const [anonymous, user] = [await url(undefined), await url('u1')]
    const change = (policy: string) =>
      tenant.request('PATCH', '/storage/v1/bucket/open', {
        as: 'service',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ policy }),
      })
    t.equal((await send(tenant.port, 'GET', anonymous)).text, 'x')
    for (const policy of ['authenticated', 'private']) {
      t.equal((await change(policy)).status, 200)
      for (const path of [anonymous, anonymous.replace('/sign/', '/')]) {
        const response = await send(tenant.port, 'GET', path)
        t.equal(response.status, 400)
        t.match(response.json(), {
          code: 'ExpiredToken',
          message: "The signed URL has expired, because the bucket's policy has changed.",
        })
      }
      t.equal((await send(tenant.port, 'GET', user)).text, 'x')
    }
  })
})
