// Objects on the hosts that belong to others, with names and images like those of the platform.
import type { Test } from 'tap'
import type { LabHost } from '#test/support/swarm-lab.ts'

const name = 'tenantry-foreign'

/** Creates a container, a volume and a network on each host. @returns a check that they are as they were */
export async function createForeignObjects(hosts: readonly LabHost[]): Promise<(t: Test) => Promise<void>> {
  for (const { docker } of hosts) {
    await docker('volume', 'create', name)
    await docker('network', 'create', name)
    const mount = ['--network', name, '--volume', `${name}:/data`]
    await docker('create', '--name', name, ...mount, '--entrypoint', 'sleep', 'tenantry/postgres:latest', 'infinity')
  }
  const inspect = async ({ docker }: LabHost) =>
    Promise.all([
      docker('volume', 'inspect', '--format', '{{.CreatedAt}} {{.Labels}}', name),
      docker('network', 'inspect', '--format', '{{.Id}} {{.Labels}}', name),
      docker('container', 'inspect', '--format', '{{.Id}} {{.Mounts}} {{.Config.Labels}}', name),
    ])
  const before = await Promise.all(hosts.map(inspect))
  return async (t) => {
    t.same(await Promise.all(hosts.map(inspect)), before, 'no object of others was changed')
  }
}
