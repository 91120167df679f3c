// What the test of clusters reads from the engine: etcd's keys, the region's own stack, memory.
import type { DockerPlatform } from '#test/support/docker-platform.ts'

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
