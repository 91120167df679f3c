// Which errors the runtime marks as rejections, which cost the tenant nothing: those before any access to the tenant's
// data, and no others.
import { rejectedHeader } from '@tenantry/contract'
import t from 'tap'
import { send, signToken, startRuntime } from '#test/support/runtime.ts'

t.test('An error is a rejection exactly when it occurs before any access to the tenant', async (t) => {
  const runtime = await startRuntime(t)
  const secret = 'a-secret-of-this-test-that-is-long-enough'
  const tenant = await runtime.addTenant({ name: 'acme', jwtSecrets: [secret] })
  const service = { authorization: `Bearer ${tenant.secretKey}` }
  const claims = { sub: 'u1', role: 'authenticated', exp: Math.floor(runtime.clock.now() / 1000) + 3600 }
  const user = { authorization: `Bearer ${signToken(claims, secret)}` }
  const wrong = { authorization: 'Bearer tn_secret_wrong' }
  t.equal(
    (await tenant.request('POST', '/storage/v1/bucket', { as: 'u1', body: { name: 'mine', policy: 'private' } }))
      .status,
    201,
  )

  const rejected = [
    ['a token that is not valid', 401, 'GET', '/storage/v1/bucket', wrong],
    ['a token that is not valid, where anonymous callers may call', 401, 'GET', '/storage/v1/object/mine/a.txt', wrong],
    ['no credentials where they are required', 401, 'POST', '/admin/reload-schemas', {}],
    ['no credentials where a user is required', 401, 'POST', '/storage/v1/object/mine/a.txt', {}],
    ['an unknown route', 404, 'GET', '/no/such/route', service],
    ['an unknown route without credentials', 404, 'GET', '/no/such/route', {}],
    ['an invalid URL', 400, 'GET', '/storage/v1/object/mine/%E0%A4%A', service],
    ['a signed URL whose signature is not valid', 400, 'GET', '/storage/v1/object/sign/mine/a.txt?token=e30.AAAA', {}],
    ['an invalid signature in its other form', 400, 'GET', '/storage/v1/object/mine/a.txt?token=e30.AAAA', {}],
    [
      'a signed upload whose signature is not valid',
      400,
      'PUT',
      '/storage/v1/object/upload/sign/mine/a.txt?token=e30.AAAA',
      {},
    ],
  ] as const
  for (const [what, status, method, path, headers] of rejected) {
    const before = tenant.statements()
    const response = await send(tenant.port, method, path, headers)
    t.equal(response.status, status, what)
    t.equal(response.headers[rejectedHeader], '1', `${what}: a rejection`)
    t.ok(Number(response.headers['content-length']) <= 4_096, `${what}: short`)
    t.equal(tenant.statements(), before, `${what}: no SQL`)
  }

  const billable = [
    ['a list', 200, 'GET', '/storage/v1/bucket', service],
    ['an anonymous list', 200, 'GET', '/storage/v1/bucket', {}],
    ['an object that is missing', 404, 'GET', '/storage/v1/object/mine/none.txt', user],
    ['a collection that is missing', 404, 'GET', '/rest/v1/none', service],
    ['a user who needs the service role', 403, 'POST', '/admin/reload-schemas', user],
    ['a body that is not valid', 400, 'POST', '/storage/v1/bucket', { ...service, 'content-type': 'application/json' }],
    ['a preflight', 204, 'OPTIONS', '/rest/v1/none', { 'access-control-request-method': 'GET' }],
  ] as const
  for (const [what, status, method, path, headers] of billable) {
    const response = await send(tenant.port, method, path, { ...headers, [rejectedHeader]: '1' })
    t.equal(response.status, status, what)
    t.equal(response.headers[rejectedHeader], undefined, `${what}: billable`)
  }
})
