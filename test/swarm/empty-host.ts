// Makes a host of the lab like a new machine, which has images and its part in the swarm, but no container and no volume.
import { until } from '#test/support/docker.ts'
import type { LabHost } from '#test/support/swarm-lab.ts'

/**
 * Removes all containers and volumes of a host. No control plane may reach its engine meanwhile.
 * @param first containers through which one would
 */
export async function emptyHost(host: LabHost, first: readonly string[] = []): Promise<void> {
  if (first.length > 0) await host.docker('rm', '--force', '--volumes', ...first)
  const list = async (...command: string[]) => (await host.docker(...command)).split('\n').filter((one) => one !== '')
  await until(async () => {
    const containers = await list('ps', '--all', '--quiet')
    if (containers.length > 0) await host.docker('rm', '--force', '--volumes', ...containers).catch(() => undefined)
    const volumes = await list('volume', 'ls', '--quiet')
    if (volumes.length > 0) await host.docker('volume', 'rm', ...volumes).catch(() => undefined)
    return containers.length + volumes.length === 0 ? true : undefined
  }, 120)
}

/** Waits until a member of etcd on a host, whose container has a matching name, is in its cluster and serves clients. */
export async function untilEtcdServes(host: LabHost, container: RegExp): Promise<void> {
  await until(async () => {
    const names = (await host.docker('ps', '--format', '{{.Names}}').catch(() => '')).split('\n')
    const name = names.find((one) => container.test(one))
    if (name === undefined) return undefined
    const users = await host.docker('exec', name, '/usr/local/bin/etcd-access', 'list').catch(() => '')
    return users.split('\n').includes('root') ? true : undefined
  }, 240)
}
