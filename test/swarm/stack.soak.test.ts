// A platform on three hosts that only `deploy/setup --swarm` and Compose have set up: the demo passes for each isolation model, and
// control planes, control database and tenants continue after the loss of a host, while its containers are replaced, and when an empty
// machine replaces it, after which the loss of another one stops nothing.
import t from 'tap'
import { until } from '#test/support/docker.ts'
import type { LabHost } from '#test/support/swarm-lab.ts'
import { emptyHost, untilEtcdServes } from './empty-host.ts'
import { startLoadedTenant } from './loaded-tenant.ts'
import { checkReplicationTls } from './replication-tls.ts'
import { startPlatform } from './stack.ts'

const models = ['schema-per-tenant', 'database-per-tenant', 'cluster-per-tenant']

t.test('A platform of deploy/setup --swarm continues after the loss of a host', { timeout: 2_700_000 }, async (t) => {
  const platform = await startPlatform(t)
  const { hosts } = platform.lab
  await platform.untilDatabaseComplete()
  const members = hosts.slice(0, 3).map((host, at) => ({ host, container: `tenantry-postgres-${at + 1}` }))
  const isReplica = [
    'psql',
    '-XAt',
    '-h',
    '/run/postgresql',
    '-U',
    'postgres',
    '-d',
    'postgres',
    '-c',
    'select pg_is_in_recovery()',
  ]
  const roles = await Promise.all(
    members.map(async ({ host, container }) => (await host.docker('exec', container, ...isReplica)).trim()),
  )
  const [primary, replica] = [members[roles.indexOf('f')], members[roles.indexOf('t')]]
  if (primary === undefined || replica === undefined)
    throw new Error(`The control database has the roles ${roles.join(', ')}.`)
  await checkReplicationTls(t, primary, primary.container.replace('tenantry-', ''), replica)
  const expected = new Map(
    await Promise.all(hosts.map(async (host) => [host.id, await platform.running(host)] as const)),
  )

  for (const isolation of models) {
    const output = await platform.demo(isolation)
    t.match(output, /create the tenant demo-/, `the demo passes with ${isolation}`)
    t.comment(output)
  }

  const single = await platform.call('POST', '/v1/tenants', {
    name: 'eve',
    plan: 'Enterprise',
    region: 'local',
    isolation: 'database-per-tenant',
  })
  t.match(single, { status: 201 })
  const singleId = String(single.body['tenant_id'])
  const secretKey = String((single.body['keys'] as Record<string, unknown>)['secret_key'])
  const loaded = [
    await startLoadedTenant(t, platform, 'ada', 'cluster-per-tenant'),
    await startLoadedTenant(t, platform, 'bob', 'schema-per-tenant'),
  ]
  await platform.until(singleId, ({ status }) => status === 'ready')
  const buckets = '/t/eve/storage/v1/bucket'
  for (const host of hosts) {
    const serves = async () => ((await platform.viaCaddy(host, buckets, secretKey)).status === 200 ? true : undefined)
    t.ok(await until(serves, 60), `Caddy on ${host.id} reaches the gateways`)
  }

  const { body } = await platform.call('GET', '/v1/regions/local/hosts')
  const shown = body['hosts'] as { id: string; services: { tenant_id: string }[] }[]
  const hasSingle = (host: LabHost) =>
    shown.some(({ id, services }) => id === `local.${host.id}` && services.some(({ tenant_id: of }) => of === singleId))
  const lost = platform.controlHosts.find((host) => !hasSingle(host))
  if (lost === undefined) throw new Error('no host to lose')
  const others = hosts.filter((host) => host !== lost)
  const acknowledged = async (rows: number) => {
    await Promise.all(loaded.map(async ({ writer }) => writer.acknowledged(writer.count() + rows, 120)))
    return loaded.map(({ writer }) => writer.takeMaxPause()).join(' and ')
  }
  await acknowledged(1)
  lost.kill()
  t.comment(`${lost.id} is lost, with pauses of ${await acknowledged(20)} ms`)
  const late = await until(async () => {
    const tenant = { name: 'fay', plan: 'Free', region: 'local' }
    const response = await platform.call('POST', '/v1/tenants', tenant).catch(() => undefined)
    return response?.status === 201 ? response : undefined
  }, 120).catch(async (cause: unknown) => {
    throw new Error(`No control plane creates a tenant.\n${await platform.logs()}`, { cause })
  })
  await platform.until(String(late.body['tenant_id']), ({ status }) => status === 'ready')
  for (const host of others) {
    const failed: object[] = []
    const serves = async () => {
      const response = await platform.viaCaddy(host, buckets, secretKey)
      if (response.status !== 200) failed.push(response)
      return response.status === 200 ? true : undefined
    }
    t.ok(await until(serves, 60), `Caddy on ${host.id} serves`)
    t.comment(`${failed.length} failed before, the first with ${JSON.stringify(failed[0])}`)
  }

  await lost.start()
  await until(async () => {
    const running = await platform.running(lost).catch(() => [])
    return JSON.stringify(running) === JSON.stringify(expected.get(lost.id)) ? true : undefined
  }, 240)
  await platform.untilDatabaseComplete()
  t.pass('all containers of the returned host run again, without a command')

  for (const host of hosts) {
    await platform.up(host, '--force-recreate')
    await platform.untilDatabaseComplete()
    t.comment(`the containers of ${host.id} were replaced, with pauses of ${await acknowledged(20)} ms`)
  }
  await emptyHost(lost, ['tenantry-watchdog', 'tenantry-docker-proxy'])
  t.comment(`${lost.id} was emptied, with pauses of ${await acknowledged(20)} ms`)
  await platform.up(lost)
  const number = hosts.indexOf(lost) + 1
  const [helper, another] = others
  if (helper === undefined || another === undefined) throw new Error('no other hosts')
  const replace = ['/usr/local/bin/etcd-access', 'replace', `etcd-${number}`]
  await helper.docker('exec', `tenantry-etcd-${hosts.indexOf(helper) + 1}`, ...replace)
  await untilEtcdServes(lost, /^tenantry-etcd-/)
  await platform.untilDatabaseComplete()
  await untilEtcdServes(lost, /^tenantry-region-.*-etcd-/)
  for (const { untilReady } of loaded) await untilReady()
  t.comment(`an empty machine has replaced ${lost.id}, with pauses of ${await acknowledged(20)} ms`)
  another.kill()
  t.comment(`${another.id} is lost after that, with pauses of ${await acknowledged(20)} ms`)
  await another.start()
  await platform.untilDatabaseComplete()
  for (const { untilReady, finish } of loaded) {
    await untilReady()
    await finish(t)
  }
  for (const host of hosts)
    t.notMatch(
      await host.docker('logs', 'tenantry-docker-proxy'),
      'Rejected a call',
      `no call on ${host.id} was rejected`,
    )
})
