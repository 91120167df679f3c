// A platform on three hosts. A tenant with a cluster of its own has a member on each and continues after the sudden loss of the host
// with its primary, without losing a row or a file. Its services are created on the other hosts, and leave a host that is drained.
import t from 'tap'
import { until } from '#test/support/docker.ts'
import type { LabHost } from '#test/support/swarm-lab.ts'
import { startSwarmPlatform } from '#test/support/swarm-platform.ts'
import { startHttpClient } from '../clusters/http-client.ts'
import { lostNothing, startWriter } from '../clusters/writer.ts'

const seconds = (since: number) => ((performance.now() - since) / 1000).toFixed(1)

t.test('A tenant with a cluster continues after the loss of a host', { timeout: 900_000 }, async (t) => {
  const platform = await startSwarmPlatform(t)
  const { hosts } = platform.lab
  const beginning = performance.now()
  const created = await platform.call('POST', '/v1/tenants', { name: 'ada', plan: 'Enterprise', region: 'local' })
  t.match(created, { status: 201, body: { isolation: 'cluster-per-tenant' } })
  const id = String(created.body['tenant_id'])
  const isReady = ({ status }: Record<string, unknown>) => status === 'ready'
  const ready = await platform.until(id, isReady, 240)
  t.comment(`ready after ${seconds(beginning)} s`)
  t.match(
    (ready['conditions'] as { type: string }[]).find(({ type }) => type === 'Spread'),
    { status: 'True', message: 'The services of the tenant are on 3 hosts.' },
  )

  const { body } = await platform.call('GET', '/v1/regions/local/hosts')
  const shown = body['hosts'] as { id: string; services: { tenant_id: string; service: string }[] }[]
  t.same(
    shown.map(({ id }) => id),
    hosts.map(({ id }) => `local.${id}`),
  )
  const serviceHost = (service: string) =>
    shown.findIndex(({ services }) => services.some((one) => one.service === service))
  t.same(['postgres-1', 'postgres-2', 'postgres-3'].map(serviceHost).sort(), [0, 1, 2], 'a member on each host')
  t.not(serviceHost('runtime-1'), serviceHost('runtime-2'))
  t.not(serviceHost('router-1'), serviceHost('router-2'))

  const primary = await platform.primaryOf(id)
  const lost = serviceHost(primary)
  const surviving = hosts.filter((_, at) => at !== lost)
  const [lostHost, survivor] = [hosts[lost], surviving[0]]
  if (lostHost === undefined || survivor === undefined) throw new Error('no hosts')
  const url = new URL(String(created.body['database_url']))
  url.hostname = survivor.address
  const writer = startWriter(url.href)
  t.teardown(() => writer.stop())
  const key = String((created.body['keys'] as Record<string, unknown>)['secret_key'])
  const client = await startHttpClient((method, path, body) =>
    fetch(`${platform.gatewayUrl(survivor)}/t/ada${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': path.endsWith('bucket') ? 'application/json' : 'text/plain',
      },
      ...(body === undefined ? {} : { body }),
    }),
  )
  await writer.acknowledged(20)

  const count = writer.count()
  const begun = performance.now()
  lostHost.kill()
  await writer.acknowledged(count + 20, 120)
  t.comment(
    `after the loss of ${lostHost.id} with the primary, 20 rows in ${seconds(begun)} s, a pause of ${writer.takeMaxPause()} ms`,
  )
  t.not(await platform.primaryOf(id), primary)
  await platform.untilHost(lostHost, ({ state }) => state === 'unreachable')
  t.match(await platform.call('GET', `/v1/tenants/${id}`), { status: 200 }, 'a control plane responds')

  const use = (host: LabHost, verb: string) =>
    platform.call('POST', `/v1/regions/local/hosts/${host.id}/${verb}`, undefined)
  const servicesOn = (host: LabHost) => platform.containersOf(host, id)
  t.match(await use(lostHost, 'lost'), { status: 200, body: { state: 'lost' } })
  await platform.untilHost(lostHost, ({ services }) => (services as unknown[]).length === 0)
  await platform.untilComplete(id)
  t.comment(`complete again on the other hosts ${seconds(begun)} s after the loss`)

  await lostHost.start()
  await platform.untilHost(lostHost, ({ state }) => state === 'reachable')
  await until(async () => ((await servicesOn(lostHost)).length === 0 ? true : undefined), 120)
  t.pass('what the returned host still ran was removed')
  await until(async () => ((await platform.volumesOf(lostHost, id)).length === 0 ? true : undefined), 120)
  t.pass('and its copies of the data')
  t.match(await use(lostHost, 'activate'), { status: 200, body: { state: 'active' } })

  const drained = surviving[1] ?? lostHost
  const draining = performance.now()
  t.match(await use(drained, 'drain'), { status: 200, body: { state: 'draining' } })
  await until(async () => ((await servicesOn(drained)).length === 0 ? true : undefined), 240)
  await platform.untilComplete(id)
  t.comment(`${drained.id} was empty after ${seconds(draining)} s, with a pause of ${writer.takeMaxPause()} ms`)
  t.not((await servicesOn(lostHost)).length, 0, 'the returned host is used')
  await platform.until(id, isReady, 240)
  const written = await writer.stop()
  lostNothing(t, written)
  const read = await client.stop()
  t.comment(JSON.stringify({ ...read, wrong: read.wrong.length }))
  t.same(
    read.wrong,
    [],
    'each response was a success or asked for a later attempt, and each acknowledged file is there',
  )
})
