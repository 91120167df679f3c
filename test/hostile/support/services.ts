// Finds the processes of the services of a platform: those that `npm start` records, or those of the engine's containers.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type Dockerode from 'dockerode'
import { connectDocker } from '#control-plane/engines/docker/docker-connection.ts'

/** The source of the processes of a platform's services. */
export type ServiceSource =
  /** The directory in which `npm start` records its processes. */
  | { runDirectory: string }
  /** The containers of an installation on an engine of this machine, and processes outside of it by their service. */
  | { engine: string; installation: string; processes: Record<string, number> }

/** The first process of a service. */
export interface ServiceProcess {
  /** The service's name without the number of the instance. */
  service: string
  /** The stack of the tenant that the service belongs to; undefined for a service of the platform. */
  tenant?: string
  pid: number
}

/** Time after which containers are listed again. */
const listMilliseconds = 1_000

/** Returns the function that finds the processes. */
export function serviceReader(source: ServiceSource): () => Promise<ServiceProcess[]> {
  return 'runDirectory' in source ? () => recordedProcesses(source.runDirectory) : containerProcesses(source)
}

const withoutNumber = (name: string) => name.replace(/-\d+$/, '')

async function recordedProcesses(directory: string): Promise<ServiceProcess[]> {
  const files = (await readdir(directory)).filter((file) => file.endsWith('.json'))
  const found = await Promise.all(
    files.map(async (file) => {
      const text = await readFile(join(directory, file), 'utf8').catch(() => '')
      if (text === '') return []
      return [{ service: withoutNumber(file.slice(0, -5)), pid: (JSON.parse(text) as { pid: number }).pid }]
    }),
  )
  return found.flat()
}

function containerProcesses({
  engine,
  installation,
  processes,
}: Exclude<ServiceSource, { runDirectory: string }>): () => Promise<ServiceProcess[]> {
  const { docker } = connectDocker({ host: engine })
  const own = Object.entries(processes).map(([service, pid]) => ({ service, pid }))
  let listed: Promise<ServiceProcess[]> = Promise.resolve([])
  let listedAt = -Infinity
  return async () => {
    if (performance.now() > listedAt + listMilliseconds) {
      listedAt = performance.now()
      const current = listed
      listed = listContainers(docker, installation).catch(() => current)
    }
    return [...own, ...(await listed)]
  }
}

async function listContainers(docker: Dockerode, installation: string): Promise<ServiceProcess[]> {
  const filters = { label: [`tenantry.installation=${installation}`] }
  const containers = await docker.listContainers({ filters })
  const found = await Promise.all(
    containers.map(async ({ Id: id, Labels: labels }) => {
      // A container may have been removed meanwhile.
      const inspected = await docker
        .getContainer(id)
        .inspect()
        .catch(() => undefined)
      const pid = inspected?.State.Pid ?? 0
      const stack = labels['tenantry.stack'] ?? ''
      const service = withoutNumber(labels['tenantry.service'] ?? '')
      return pid === 0 ? [] : [{ service, pid, ...(stack.startsWith('t_') ? { tenant: stack } : {}) }]
    }),
  )
  return found.flat()
}
