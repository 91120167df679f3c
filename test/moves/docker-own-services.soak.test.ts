// A tenant of a region on a Docker Engine moves between all isolation models, while it is used.
import t from 'tap'
import { databaseVolumes, serviceNames, volumeName, type Isolation } from '#control-plane/stacks/index.ts'
import { everyObjectSql } from '#test/backups/support/every-object.ts'
import { etcdList } from '#test/clusters/platform-parts.ts'
import { clusterImages, startDockerPlatform, type DockerPlatform } from '#test/support/docker-platform.ts'
import { checkFiles, checkWrites, runsOf, startRequests } from './support/busy-scene.ts'
import { createBusyTenant } from './support/busy-tenant.ts'
import { homeOf, isolate } from './support/isolation.ts'
import { sql } from './support/platform.ts'

const shared = { isolation: 'schema-per-tenant', database: 'tenantry_homes_1' } as const
const own = { isolation: 'database-per-tenant', database: 'home' } as const
const cluster = { isolation: 'cluster-per-tenant', database: 'home' } as const
/** Each model after each other one. */
const models = [shared, own, cluster, shared, cluster, own, shared]

t.test('A tenant moves between all isolation models', { timeout: 3_600_000 }, async (t) => {
  // A busy machine may need longer than the default for what a hold does.
  const platform = await startDockerPlatform({
    docker: { clusters: clusterImages },
    environment: { TENANTRY_MOVE_HOLD_MILLISECONDS: '30000' },
  })
  t.teardown(() => platform.stop())
  const tenant = await createBusyTenant(platform, 'ada')
  await sql(tenant.url, everyObjectSql)
  const users = await startRequests(t, tenant)
  await users.untilAllContinue()
  for (const [at, { isolation, database }] of models.slice(1).entries()) {
    t.match(await isolate(platform, tenant, isolation), {
      state: 'succeeded',
      error: null,
      move: { from: models[at]?.database, to: database, to_isolation: isolation },
    })
    await users.untilAllContinue()
    t.match(await platform.call('GET', `/v1/tenants/${tenant.id}`), { body: { status: 'ready', isolation } }, isolation)
    if (isolation !== 'schema-per-tenant')
      t.equal(await sharedRoles(platform, tenant.id), '0', 'nothing is left in the shared Postgres')
    const former = remainsOf(models[at]?.isolation ?? isolation)
    t.same((await ownObjects(platform, tenant.id)).filter(former), [], 'the former services and volumes are removed')
  }
  await users.stop()
  t.same(await ownObjects(platform, tenant.id), [], 'nothing of its own is left')
  t.notMatch(await etcdList(platform, AbortSignal.timeout(30_000)), tenant.id, 'nothing is left in etcd')
  const home = homeOf(tenant)
  const ids = await checkWrites(t, home, users)
  await checkFiles(t, tenant, users)
  t.same((await runsOf(t, home)).notes.sort(), ids.sort(), 'each note has run its function once')
  t.match(await sql(tenant.url, 'select count(*)::int as n from facts'), [{ n: 500 }], 'every kind of object is there')
})

/** Returns a filter of the objects that only services of a model have. */
function remainsOf(isolation: Isolation): (object: string) => boolean {
  const volumes = isolation === 'schema-per-tenant' ? [] : databaseVolumes(isolation)
  const names = [...serviceNames(isolation), ...volumes]
  return (object) => names.includes(object)
}

/** Returns the names of the tenant's services, of those with secrets, and of its volumes. */
async function ownObjects({ host, installation }: DockerPlatform, id: string): Promise<string[]> {
  const { containers, volumes } = await host.observe({ installation, stack: id }, AbortSignal.timeout(30_000))
  return [...containers, ...volumes].map(({ name, labels }) => labels.service ?? name.slice(volumeName(id, '').length))
}

/** Returns the number of the tenant's roles and of the replication slots in the region's Postgres. */
async function sharedRoles({ host, installation }: DockerPlatform, id: string): Promise<string> {
  const signal = AbortSignal.timeout(30_000)
  const { containers } = await host.observe({ installation }, signal)
  const found = containers.find(({ name, labels }) => labels.service === 'postgres' && name.includes('region-local'))
  const count = `select (select count(*) from pg_roles where rolname like '%${id.slice(2)}%') + (select count(*) from pg_replication_slots)`
  const psql = ['psql', '-U', 'postgres', '-At', '-c', count]
  return (await host.exec(found?.name ?? '', psql, { signal })).stdout.trim()
}
