// Reads how much private memory each service of a platform uses.
import { readFile } from 'node:fs/promises'
import { serviceReader, type ServiceProcess, type ServiceSource } from './services.ts'

/** Above this sum, the largest process is killed: an attack that nothing stops must not harm the machine. */
const maxTotalBytes = 9e9

interface ProcessMemory {
  pid: number
  service: string
  tenant: string | undefined
  bytes: number
}

const read = (path: string) => readFile(path, 'utf8').catch(() => '')

const children = async (pid: number): Promise<number[]> =>
  (await read(`/proc/${pid}/task/${pid}/children`))
    .split(' ')
    .filter((text) => text.trim() !== '')
    .map(Number)

/** Returns a process and all that it has started. */
async function family(pid: number): Promise<number[]> {
  return [pid, ...(await Promise.all((await children(pid)).map(family))).flat()]
}

/** Returns the first process of a service itself: a container's first process is an init that starts it. */
async function afterInit(pid: number): Promise<number> {
  if ((await read(`/proc/${pid}/comm`)).trim() !== 'tini') return pid
  return (await children(pid))[0] ?? pid
}

async function privateBytes(pid: number): Promise<number> {
  const kilobytes = /^RssAnon:\s+(\d+) kB/m.exec(await read(`/proc/${pid}/status`))?.[1]
  return Number(kilobytes ?? 0) * 1024
}

/** Returns the processes of a service. Those that a runtime starts run functions. */
async function processesOf({ service, tenant, pid }: ServiceProcess): Promise<ProcessMemory[]> {
  const first = await afterInit(pid)
  return Promise.all(
    (await family(first)).map(async (one) => ({
      pid: one,
      service: service.endsWith('runtime') && one !== first ? 'functions' : service,
      tenant,
      bytes: await privateBytes(one),
    })),
  )
}

/**
 * Returns the function that reads the private memory (RssAnon) of each service, summed over its processes: of Postgres,
 * also over its sessions. Of the services that tenants have of their own, it returns those of the tenant that uses most.
 */
export function memoryReader(source: ServiceSource): () => Promise<Record<string, number>> {
  const services = serviceReader(source)
  return async () => {
    const all = (await Promise.all((await services()).map(processesOf))).flat()
    const sums = new Map<string, number>()
    for (const { service, tenant, bytes } of all) {
      const key = `${tenant ?? ''} ${service}`
      sums.set(key, (sums.get(key) ?? 0) + bytes)
    }
    const largest: Record<string, number> = {}
    for (const [key, bytes] of sums) {
      const [tenant = '', service = ''] = key.split(' ')
      const name = tenant === '' ? service : `tenant-${service}`
      largest[name] = Math.max(largest[name] ?? 0, bytes)
    }
    const [first] = all.toSorted((a, b) => b.bytes - a.bytes)
    const total = all.reduce((sum, { bytes }) => sum + bytes, 0)
    if (first !== undefined && total > maxTotalBytes) process.kill(first.pid, 'SIGKILL')
    return largest
  }
}
