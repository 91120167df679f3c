// A platform on three hosts. A tenant with a cluster of its own has a member on each and continues after the sudden loss of the host
// with its primary, without losing a row or a file. Its services are created on the other hosts, leave a host that is drained, and leave
// nothing behind when the tenant is deleted.
import t from 'tap'
import { until } from '#test/support/docker.ts'
import type { LabHost } from '#test/support/swarm-lab.ts'
import { startSwarmPlatform } from '#test/support/swarm-platform.ts'
import { startLoadedCluster } from './loaded-cluster.ts'

const seconds = (since: number) => ((performance.now() - since) / 1000).toFixed(1)

t.test('A tenant with a cluster continues after the loss of a host', { timeout: 900_000 }, async (t) => {
  const platform = await startSwarmPlatform(t)
  const { hosts } = platform.lab
  const beginning = performance.now()
  const { id, writer, untilReady, finish } = await startLoadedCluster(t, platform, 'ada')
  t.comment(`ready, with 20 rows, after ${seconds(beginning)} s`)
  const ready = await untilReady()
  t.match(
    (ready['conditions'] as { type: string }[]).find(({ type }) => type === 'Spread'),
    { status: 'True', message: 'The services of the tenant are on 3 hosts.' },
  )

  const { body } = await platform.call('GET', '/v1/regions/local/hosts')
  const shown = body['hosts'] as { id: string; services: { tenant_id: string; service: string }[] }[]
  t.same(
    shown.map((host) => host.id),
    hosts.map((host) => `local.${host.id}`),
  )
  const serviceHost = (service: string) =>
    shown.findIndex(({ services }) => services.some((one) => one.service === service))
  t.same(['postgres-1', 'postgres-2', 'postgres-3'].map(serviceHost).sort(), [0, 1, 2], 'a member on each host')
  t.not(serviceHost('runtime-1'), serviceHost('runtime-2'))
  t.not(serviceHost('router-1'), serviceHost('router-2'))

  const use = (host: LabHost, verb: string) => platform.call('POST', `/v1/regions/local/hosts/${host.id}/${verb}`)
  const isEmpty = async (host: LabHost) => (await platform.containersOf(host, id)).length === 0
  const untilEmpty = (host: LabHost) => until(async () => ((await isEmpty(host)) ? true : undefined), 240)
  const hostOfPrimary = async () => {
    const member = await platform.primaryOf(id)
    const names = await Promise.all(hosts.map((host) => platform.containersOf(host, id)))
    return hosts[names.findIndex((own) => own.some((name) => name.includes(`-${member}-`)))] ?? hosts[0]
  }

  const drained = await hostOfPrimary()
  const draining = performance.now()
  writer.takeMaxPause()
  t.match(await use(drained, 'drain'), { status: 200, body: { use: 'draining' } })
  await untilEmpty(drained)
  await platform.untilComplete(id)
  const held = writer.takeMaxPause()
  t.comment(`${drained.id} with the primary was empty after ${seconds(draining)} s, with a pause of ${held} ms`)
  t.match(await use(drained, 'activate'), { status: 200, body: { use: 'active' } })

  await until(async () => ((await isEmpty(drained)) ? undefined : true), 240)
  await platform.untilComplete(id)
  t.pass('a member returns to the host without one')

  const primary = await platform.primaryOf(id)
  const lostHost = await hostOfPrimary()
  const count = writer.count()
  const begun = performance.now()
  lostHost.kill()
  await writer.acknowledged(count + 20, 120)
  const pause = writer.takeMaxPause()
  t.comment(`after the loss of ${lostHost.id} with the primary, 20 rows in ${seconds(begun)} s, a pause of ${pause} ms`)
  t.not(await platform.primaryOf(id), primary)
  await platform.untilHost(lostHost, ({ state }) => state === 'unreachable')
  t.match(await platform.call('GET', `/v1/tenants/${id}`), { status: 200 }, 'a control plane responds')

  t.match(await use(lostHost, 'lost'), { status: 200, body: { use: 'lost' } })
  await platform.untilHost(lostHost, ({ services }) => (services as unknown[]).length === 0)
  await platform.untilComplete(id)
  t.comment(`complete again on the other hosts ${seconds(begun)} s after the loss`)

  await lostHost.start()
  await platform.untilHost(lostHost, ({ state }) => state === 'reachable')
  await untilEmpty(lostHost)
  t.pass('what the returned host still ran was removed')
  await until(async () => ((await platform.volumesOf(lostHost, id)).length === 0 ? true : undefined), 120)
  t.pass('and its copies of the data')
  t.match(await use(lostHost, 'activate'), { status: 200, body: { use: 'active' } })

  await untilReady()
  await finish(t)

  t.match(await platform.call('DELETE', `/v1/tenants/${id}?purge=true`), { status: 202 })
  await until(async () => ((await platform.call('GET', `/v1/tenants/${id}`)).status === 404 ? true : undefined), 180)
  for (const host of hosts) {
    t.ok(await isEmpty(host), `no container on ${host.id}`)
    t.same(await platform.volumesOf(host, id), [], `no volume on ${host.id}`)
  }
  t.same(
    (await platform.storedKeys()).filter((name) => name.includes(id)),
    [],
    'no file',
  )
})
