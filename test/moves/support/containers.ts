// A region on a Docker Engine in which tenants move: what a tenant has in containers and volumes, and in the Postgres that tenants share.
import type { Test } from 'tap'
import { databaseVolumes, serviceNames, volumeName, type Isolation } from '#control-plane/stacks/index.ts'
import { etcdList } from '#test/clusters/platform-parts.ts'
import { clusterImages, startDockerPlatform, type DockerPlatform } from '#test/support/docker-platform.ts'
import { checkFiles, checkWrites, runsOf, type Writers } from './busy-scene.ts'
import type { BusyTenant } from './busy-tenant.ts'
import { homeOf } from './isolation.ts'

/** Starts a region in which nothing stays after a move, unless the environment lets it stay. */
export async function startContainers(t: Test, environment: Record<string, string> = {}): Promise<DockerPlatform> {
  const platform = await startDockerPlatform({
    docker: { clusters: clusterImages },
    // A busy machine may need longer than the default for what a hold does.
    environment: {
      TENANTRY_MOVE_HOLD_MILLISECONDS: '30000',
      TENANTRY_MOVE_REVERSE_SECONDS: '0',
      ...environment,
    },
  })
  t.teardown(() => platform.stop())
  return platform
}

/** Returns a filter of the objects that only services of a model have. */
export function remainsOf(isolation: Isolation): (object: string) => boolean {
  const volumes = isolation === 'schema-per-tenant' ? [] : databaseVolumes(isolation)
  const names = [...serviceNames(isolation), ...volumes]
  return (object) => names.includes(object)
}

/** Returns the names of the tenant's services, of those with secrets, and of its volumes. */
export async function ownObjects({ host, installation }: DockerPlatform, id: string): Promise<string[]> {
  const { containers, volumes } = await host.observe({ installation, stack: id }, AbortSignal.timeout(30_000))
  return [...containers, ...volumes].map(({ name, labels }) => labels.service ?? name.slice(volumeName(id, '').length))
}

/** Returns the number of the tenant's roles and of the replication slots in the region's Postgres. */
export async function sharedRemains({ host, installation }: DockerPlatform, id: string): Promise<string> {
  const signal = AbortSignal.timeout(30_000)
  const { containers } = await host.observe({ installation }, signal)
  const found = containers.find(({ name, labels }) => labels.service === 'postgres' && name.includes('region-local'))
  const count = `select (select count(*) from pg_roles where rolname like '%${id.slice(2)}%') + (select count(*) from pg_replication_slots)`
  const psql = ['psql', '-U', 'postgres', '-At', '-c', count]
  return (await host.exec(found?.name ?? '', psql, { signal })).stdout.trim()
}

/** Checks a tenant that shares a database again: nothing of its own is left, and it has all that its users have written. */
export async function checkReturned(
  t: Test,
  platform: DockerPlatform,
  tenant: BusyTenant,
  users: Writers,
): Promise<void> {
  t.same(await ownObjects(platform, tenant.id), [], 'nothing of its own is left')
  t.notMatch(await etcdList(platform, AbortSignal.timeout(30_000)), tenant.id, 'nothing is left in etcd')
  const home = homeOf(tenant)
  const ids = await checkWrites(t, home, users)
  await checkFiles(t, tenant, users)
  t.same((await runsOf(t, home)).notes.sort(), ids.sort(), 'each note has run its function once')
}
