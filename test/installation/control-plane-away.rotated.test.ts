// The control plane is killed when a tenant becomes ready. Each gateway serves the tenant, also after its restart, and requests
// of unauthenticated clients cost the tenant nothing.
import t from 'tap'
import { startPlatform } from '#test/support/platform.ts'
import { until } from '#test/support/until.ts'

t.test('Gateways serve a new tenant while the control plane is down, also after a restart', async (t) => {
  const platform = await startPlatform({ gateways: 2 })
  t.teardown(() => platform.stop())
  const control = await platform.startControlPlane()
  const { status, body } = await platform.call(
    'POST',
    '/v1/tenants',
    { name: 'acme', plan: 'Free', region: 'local' },
    { prefer: 'wait=60' },
  )
  control.process.kill('SIGKILL')
  await control.exited
  t.same([status, body['status']], [201, 'ready'])
  const { secret_key: key } = body['keys'] as { secret_key: string }
  const list = async (gateway: number, token = key) => {
    const response = await platform.tenantCall('acme', 'GET', '/storage/v1/bucket', { key: token, gateway })
    await response.body?.cancel()
    return response.status
  }
  t.same([await list(0), await list(1)], [200, 200], 'both gateways have a lease')
  await platform.killGateway()
  await platform.startGateway()
  t.equal(await list(0), 200, 'the restarted gateway serves the tenant')

  for (let nth = 0; nth < 20; nth++) t.equal(await list(nth % 2, 'tn_secret_wrong'), 401)
  const missing = await platform.tenantCall('acme', 'GET', '/storage/v1/object/system/none', { key })
  t.equal(missing.status, 404)
  await platform.startControlPlane()
  const counts = async () => {
    const usage = await platform.call('GET', `/v1/tenants/${String(body['tenant_id'])}/usage?resource=api_requests`)
    return (
      usage.body['resources'] as { api_requests: { count: number; rejected: number; rejected_by_status: object } }
    ).api_requests
  }
  await until(async () => {
    const { count, rejected } = await counts()
    return count >= 4 && rejected >= 20
  }, 'the counts of all requests')
  t.match(await counts(), { count: 4, rejected: 20, rejected_by_status: { '4xx': 20 } })
})
