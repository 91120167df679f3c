// An operator blocks an address: all gateways reset its connections, also after a restart without a control plane, and serve
// all other clients. Then the operator unblocks it.
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import t from 'tap'
import { effort } from '#test/support/effort.ts'
import { startPlatform } from '#test/support/platform.ts'
import { until } from '#test/support/until.ts'

const attacker = '127.0.0.111'
const neighbour = '127.0.0.112'
const path = `/v1/blocked-addresses/${attacker}`

/** The number of requests that were served. */
let served = 0

/** Requests the tenant's buckets. @returns the status, or the error of the connection */
async function list(gatewayUrl: string, localAddress: string, key: string): Promise<string> {
  const headers = { authorization: `Bearer ${key}` }
  const request = httpRequest(`${gatewayUrl}/t/acme/storage/v1/bucket`, { agent: false, localAddress, headers })
  request.on('error', () => undefined)
  try {
    const [response] = (await once(request.end(), 'response')) as [IncomingMessage]
    await response.resume().toArray()
    if (response.statusCode === 200) served++
    return String(response.statusCode)
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error)
  }
}

t.test('A blocked address that floods gets nothing, also while the control plane is down', async (t) => {
  const platform = await startPlatform({ gateways: 2 })
  t.teardown(() => platform.stop())
  const control = await platform.startControlPlane()
  const made = await platform.call(
    'POST',
    '/v1/tenants',
    { name: 'acme', plan: 'Free', region: 'local' },
    { prefer: 'wait=60' },
  )
  t.same([made.status, made.body['status']], [201, 'ready'])
  const { secret_key: key } = made.body['keys'] as { secret_key: string }
  const ofBoth = async (address: string) =>
    (await Promise.all(platform.gatewayUrls.map((url) => list(url, address, key)))).join(' ')
  t.equal(await ofBoth(attacker), '200 200')
  const requests = async () => {
    const usage = await platform.call(
      'GET',
      `/v1/tenants/${String(made.body['tenant_id'])}/usage?resource=api_requests`,
    )
    return (usage.body['resources'] as { api_requests: { count: number; rejected: number } }).api_requests
  }

  const block = await platform.call('PUT', path, { reason: 'floods', confirmed: true })
  t.match(block, { status: 200, body: { address: attacker, reason: 'floods', expires_at: null } })
  await until(async () => (await ofBoth(attacker)) === 'ECONNRESET ECONNRESET', 'the block at both gateways')

  let isOver = false
  const flood = Promise.all(
    Array.from({ length: 8 }, async (_, nth) => {
      const seen = new Set<string>()
      while (!isOver) seen.add(await list(platform.gatewayUrls[nth % 2] ?? '', attacker, key))
      return [...seen]
    }),
  )
  for (let nth = 0; nth < effort({ small: 25, full: 500 }); nth++) t.equal(await ofBoth(neighbour), '200 200')
  isOver = true
  t.same(new Set((await flood).flat()), new Set(['ECONNRESET']), 'the flood gets nothing')
  await until(async () => (await requests()).count >= served, 'the counts of the served requests')
  t.match(await requests(), { count: served, rejected: 0 }, 'the tenant is charged for those only')

  control.process.kill('SIGKILL')
  await control.exited
  await platform.killGateway()
  await platform.startGateway()
  t.equal(await ofBoth(attacker), 'ECONNRESET ECONNRESET', 'without a control plane')
  t.equal(await ofBoth(neighbour), '200 200')

  await platform.startControlPlane()
  const unblock = await platform.call('DELETE', path)
  t.equal(unblock.status, 204)
  await until(async () => (await ofBoth(attacker)) === '200 200', 'the end of the block')
  const { entries } = (await platform.call('GET', '/v1/audit?limit=2')).body as { entries: object[] }
  t.match(entries, [
    { action: 'blocked_address.delete', target: attacker },
    { action: 'blocked_address.put', target: attacker, detail: { reason: 'floods' } },
  ])
})
