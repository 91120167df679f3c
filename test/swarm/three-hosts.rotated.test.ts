// A platform on three hosts. A tenant with a cluster of its own, and one that shares the cluster of the region, continue after the sudden
// loss of the host with both primaries, without losing a row or a file. The former's services are created on the other hosts, leave a
// host that is drained, and leave nothing behind when the tenant is deleted. An empty machine replaces a host without an operator.
import t, { type Test } from 'tap'
import { clusterMembers } from '#control-plane/stacks/cluster-services.ts'
import { until } from '#test/support/docker.ts'
import type { LabHost } from '#test/support/swarm-lab.ts'
import { startSwarmPlatform, type SwarmPlatform } from '#test/support/swarm-platform.ts'
import { emptyHost, untilEtcdServes } from './empty-host.ts'
import { startLoadedTenant } from './loaded-tenant.ts'
import { checkReplicationTls, type MemberContainer } from './replication-tls.ts'
import { courseOf } from './shown.ts'

const seconds = (since: number) => ((performance.now() - since) / 1000).toFixed(1)

/** Checks the replication of a cluster on its running members. */
async function checkCluster(t: Test, platform: SwarmPlatform, cluster: string): Promise<void> {
  await platform.untilComplete(cluster)
  const { member: primary } = await platform.primaryOf(cluster)
  const members = new Map<string, MemberContainer>()
  for (const host of platform.lab.hosts)
    for (const container of await platform.containersOf(host, cluster)) {
      const member = clusterMembers.find((name) => container.startsWith(`tenantry-${cluster}-${name}-`))
      if (member !== undefined) members.set(member, { host, container })
    }
  const replica = members.get(clusterMembers.find((name) => name !== primary) ?? '')
  const found = members.get(primary)
  if (found === undefined || replica === undefined) throw new Error(`The cluster ${cluster} has not all its members.`)
  await checkReplicationTls(t, found, primary, replica)
}

/** Returns the conditions of the region as the leading control plane shows them. */
async function regionConditions(platform: SwarmPlatform): Promise<Record<string, unknown>[]> {
  const leader = new URL(platform.controlUrl)
  leader.hostname = (await platform.leader()).address
  const headers = { authorization: `Bearer ${platform.platformKey}` }
  const response = await fetch(new URL('/v1/regions', leader), { headers })
  const { regions } = (await response.json()) as { regions: { conditions: Record<string, unknown>[] }[] }
  return regions.flatMap(({ conditions }) => conditions)
}

t.test('Tenants continue after the loss of a host', { timeout: 900_000 }, async (t) => {
  const platform = await startSwarmPlatform(t)
  const { hosts } = platform.lab
  const beginning = performance.now()
  const tenant = await startLoadedTenant(t, platform, 'ada', 'cluster-per-tenant')
  const { id, writer, untilReady, finish } = tenant
  t.comment(`ready, with rows, after ${seconds(beginning)} s`)
  const sharing = await startLoadedTenant(t, platform, 'bob', 'schema-per-tenant')
  const ready = await untilReady()
  t.match(
    (ready['conditions'] as { type: string }[]).find(({ type }) => type === 'Spread'),
    { status: 'True', message: 'The services of the tenant are on 3 hosts.' },
  )

  for (const cluster of [id, platform.sharedCluster]) await checkCluster(t, platform, cluster)
  t.match(
    (await regionConditions(platform)).find(({ type }) => type === 'Encrypted'),
    { status: 'False', reason: 'PrivateLinkRequired', message: /WireGuard/ },
    'the networks of the lab are not encrypted, and the region states it',
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

  /** Makes the member of the tenant's cluster on a host its primary. */
  const gatherOn = async (host: LabHost) => {
    const here = await platform.containersOf(host, id)
    const member = clusterMembers.find((name) => here.some((container) => container.includes(`-${name}-`))) ?? ''
    if ((await platform.primaryOf(id)).member !== member)
      t.match(await platform.call('POST', `/v1/tenants/${id}/switchover`, { to: member }), { status: 202 })
    await until(async () => ((await platform.primaryOf(id)).member === member ? true : undefined), 60)
    await Promise.all([platform.untilComplete(id), platform.untilComplete(platform.sharedCluster)])
    return member
  }

  const { host: drained } = await platform.primaryOf(platform.sharedCluster)
  await gatherOn(drained)
  const draining = performance.now()
  for (const one of [writer, sharing.writer]) one.takeMaxPause()
  t.match(await use(drained, 'drain'), { status: 200, body: { use: 'draining' } })
  await untilEmpty(drained)
  await platform.untilComplete(id)
  const held = writer.takeMaxPause()
  t.comment(`${drained.id} with the primary was empty after ${seconds(draining)} s, with a pause of ${held} ms`)
  await until(async () => {
    const { host } = await platform.primaryOf(platform.sharedCluster)
    return host.id === drained.id ? undefined : true
  }, 180)
  t.comment(`the primary of the shared cluster left it, with a pause of ${sharing.writer.takeMaxPause()} ms`)
  t.match(await use(drained, 'activate'), { status: 200, body: { use: 'active' } })

  await until(async () => ((await isEmpty(drained)) ? undefined : true), 240)
  await platform.untilComplete(id)
  t.pass('a member returns to the host without one')

  const { member: sharedPrimary, host: lostHost } = await platform.primaryOf(platform.sharedCluster)
  const primary = await gatherOn(lostHost)
  const writers = [writer, sharing.writer]
  const counts = writers.map((one) => {
    one.takeMaxPause()
    return one.count()
  })
  for (const one of [tenant, sharing]) one.takeMaxReadPause()
  const begun = performance.now()
  lostHost.kill()
  await Promise.all(writers.map((one, at) => one.acknowledged((counts[at] ?? 0) + 20, 120)))
  const pauses = writers.map((one) => one.takeMaxPause()).join(' and ')
  t.comment(`${lostHost.id} with both primaries is lost: 20 rows each in ${seconds(begun)} s, pauses of ${pauses} ms`)
  const readPauses = [tenant, sharing].map((one) => one.takeMaxReadPause())
  t.comment(`reads paused for ${readPauses.map(({ milliseconds }) => milliseconds).join(' and ')} ms`)
  for (const pause of readPauses) for (const line of courseOf(pause)) t.comment(line)
  t.not((await platform.primaryOf(id)).member, primary)
  t.not((await platform.primaryOf(platform.sharedCluster)).member, sharedPrimary)
  await platform.untilHost(lostHost, ({ state }) => state === 'unreachable')
  const late = await platform.call('POST', '/v1/tenants', { name: 'eve', plan: 'Free', region: 'local' })
  t.match(late, { status: 201, body: { isolation: 'schema-per-tenant' } }, 'a control plane responds')
  await platform.until(String(late.body['tenant_id']), ({ status }) => status === 'ready')
  t.pass('and leads, and reaches the shared cluster')

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

  const [first, second, third] = hosts
  await untilReady()
  for (const host of [first, second]) await host.docker('stop', 'control-plane')
  await emptyHost(third)
  for (const host of [first, second]) await host.docker('start', 'control-plane')
  await untilEtcdServes(third, /^tenantry-region-.*-etcd-/)
  await Promise.all([platform.untilComplete(id), platform.untilComplete(platform.sharedCluster)])
  t.pass('an empty machine gets all services of the host that it replaces')

  await untilReady()
  for (const cluster of [id, platform.sharedCluster]) await checkCluster(t, platform, cluster)
  await finish(t)
  await platform.untilComplete(platform.sharedCluster)
  await sharing.untilReady()
  await sharing.finish(t)

  t.match(await platform.call('DELETE', `/v1/tenants/${id}?purge=true`), { status: 202 })
  const untilDeleted = (seconds: number) => platform.until(id, ({ code }) => code === 'TENANT_NOT_FOUND', seconds)
  // The swarm may attach a container that is gone to the network until Docker on its host is restarted, which the guide describes.
  await untilDeleted(60).catch(async () => {
    t.comment(`${lostHost.id} is restarted, so that the deletion ends`)
    lostHost.kill()
    await lostHost.start()
    await untilDeleted(240)
  })
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
