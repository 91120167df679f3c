// What the tests of clusters read: members, containers, etcd's keys, the region's own stack, memory.
import type { DockerPlatform } from '#test/support/docker-platform.ts'
import { until } from '#test/support/until.ts'

/** A member of a cluster, as the health of its tenant shows it. */
export interface Member {
  name: string
  role: string
  state: string
  timeline: number
  synchronous: boolean
}

/** Returns the members of a tenant's cluster; none while the control plane does not know them. */
export async function membersOf(platform: DockerPlatform, { id }: { id: string }): Promise<Member[]> {
  const { body } = await platform.call('GET', `/v1/tenants/${id}/health`)
  return (body['members'] ?? []) as Member[]
}

const runningPrimary = (members: readonly Member[]) =>
  members.find(({ role, state }) => role === 'primary' && state === 'running')

/** Waits until one member is the primary, and the others follow it on its timeline and may confirm its commits. */
export async function completeCluster(
  platform: DockerPlatform,
  tenant: { id: string },
  seconds: number,
): Promise<Member[]> {
  const deadline = performance.now() + seconds * 1000
  for (;;) {
    const all = await membersOf(platform, tenant)
    const primary = runningPrimary(all)
    const following = all.filter(
      ({ role, state, timeline, synchronous }) =>
        role === 'replica' && state === 'streaming' && timeline === primary?.timeline && synchronous,
    )
    if (following.length === 2) return all
    if (performance.now() > deadline) throw new Error(`not complete in ${seconds} s: ${JSON.stringify(all)}`)
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}

/** Command that crashes the Postgres of a member. */
export const crashPostgres = ['bash', '-c', 'kill -9 "$(head -1 "$PGDATA/postmaster.pid")"']

/** Waits for a primary, and returns its service. */
export async function primaryOf(platform: DockerPlatform, tenant: { id: string }): Promise<string> {
  let name: string | undefined
  const isFound = async () => {
    name = runningPrimary(await membersOf(platform, tenant))?.name
    return name !== undefined
  }
  await until(isFound, 'a primary', 60_000)
  return name ?? ''
}

/** Returns the name of the container of a tenant's service. */
export async function containerOf(
  { host, installation }: DockerPlatform,
  { id }: { id: string },
  service: string,
  signal: AbortSignal,
): Promise<string> {
  const { containers } = await host.observe({ installation, stack: id }, signal)
  const found = containers.find(({ labels }) => labels.service === service)
  if (found === undefined) throw new Error(`no container of ${service}`)
  return found.name
}

/** Returns all keys and users of the region's etcd. */
export async function etcdList({ host, installation }: DockerPlatform, signal: AbortSignal): Promise<string> {
  const { containers } = await host.observe({ installation }, signal)
  const member = containers.find(({ labels }) => labels.service === 'etcd-1')
  if (member === undefined) throw new Error('etcd-1 does not exist')
  const { code, stdout, stderr } = await host.exec(member.name, ['/usr/local/bin/etcd-access', 'list'], { signal })
  if (code !== 0) throw new Error(stderr)
  return stdout
}

/** Returns the ID of the region's own stack. */
export async function regionStackOf({ host, installation }: DockerPlatform, signal: AbortSignal): Promise<string> {
  const { containers } = await host.observe({ installation }, signal)
  const found = containers.find(({ labels }) => labels.stack.startsWith('region-'))
  if (found === undefined) throw new Error('the region has no containers')
  return found.labels.stack
}

/** Returns the memory of a stack's containers in bytes, and its parts as text. */
export async function memoryOf(
  { host, installation }: DockerPlatform,
  stack: string,
  signal: AbortSignal,
  prefix = '',
) {
  const observed = await host.observe({ installation, stack }, signal)
  const containers = observed.containers.filter(({ labels }) => labels.service?.startsWith(prefix))
  const parts = await Promise.all(
    containers.map(async ({ name, labels }) => ({
      service: labels.service ?? '',
      bytes: (await host.stats(name, signal)).memoryBytes,
    })),
  )
  return {
    memory: parts.reduce((sum, { bytes }) => sum + bytes, 0),
    services: parts.map(({ service, bytes }) => `${service} ${Math.round(bytes / 1e6)}`).join(', '),
  }
}
