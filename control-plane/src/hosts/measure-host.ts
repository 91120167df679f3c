// Measures a host of a region: with the engine's description, and with the kernel's own figures. Those of a Docker Engine on
// another machine are read inside a container of the region, which shows the host's kernel.
import { readFile } from 'node:fs/promises'
import { availableParallelism, hostname, totalmem } from 'node:os'
import type { Clock } from '../platform/clock.ts'
import { type Engine, type HostInfo, isUnreachable, type ObservedContainer } from '../engines/index.ts'
import type { Region } from '../reconcile/index.ts'
import { type Amounts, availableMemory, diskSpace, idleShare, isTenants, type Measurement, reservedBy } from './host.ts'

/** The time between the two readings of the CPU's idle time. */
const sampleMilliseconds = 1_000
/** Marks the end of each part of the program's output. */
const separator = '--'
/** The services of a region's own stack that the program can run in, and the paths of their volumes. */
const readingServices: readonly { name: RegExp; path: string }[] = [
  { name: /^postgres$/, path: '/var/lib/postgresql' },
  { name: /^etcd-\d$/, path: '/var/lib/etcd' },
]
const programOn = (path: string) => [
  'sh',
  '-c',
  `cat /proc/meminfo; echo ${separator}; head -n 1 /proc/stat; sleep ${sampleMilliseconds / 1000}; echo ${separator}; ` +
    `head -n 1 /proc/stat; echo ${separator}; df -Pk ${path}`,
]

/** The kernel's figures of a host. */
interface KernelFigures {
  freeMemory: number | null
  idle: number | null
  disk: Amounts
}

const unknown: KernelFigures = { freeMemory: null, idle: null, disk: { total: null, free: null } }

/**
 * Measures a region's host.
 * @param hostId empty in a region with one host
 * @throws EngineError if the host cannot be reached
 */
export async function measureHost(
  region: Region,
  hostId: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<Measurement> {
  const { engine, config } = region
  const isThere = ({ host = '' }: { host?: string }) => host === hostId
  const info = await engine?.info(signal, hostId === '' ? undefined : hostId)
  const observed = await engine?.observe(undefined, signal)
  const containers = (observed?.containers ?? []).filter(isThere)
  const services = containers.filter(({ labels }) => labels.stack === region.stackId)
  const kernel =
    config.docker === undefined || engine === undefined
      ? await ownFigures(clock, signal)
      : await figuresInside(engine, region.stackId, servicesIn(services), signal)
  const cores = info?.cpus ?? availableParallelism()
  return {
    name: info?.name ?? hostname(),
    apiVersion: info?.apiVersion ?? null,
    cpuMillis: { total: cores * 1000, free: kernel.idle === null ? null : Math.round(kernel.idle * cores * 1000) },
    memoryBytes: { total: info?.memoryBytes ?? totalmem(), free: kernel.freeMemory },
    diskBytes: diskOf(kernel.disk, info?.disk),
    reservedByTenants: reservedBy(containers, isTenants),
    reservedByPlatform: reservedBy(containers, (stack) => !isTenants(stack)),
    warnings: [...(info?.warnings ?? [])],
  }
}

function diskOf(read: Amounts, disk: HostInfo['disk']): Amounts {
  if (read.total !== null || disk === undefined) return read
  return { total: disk.totalBytes, free: disk.freeBytes }
}

/** Reads the figures of this machine, where the region's parts are processes. */
async function ownFigures(clock: Clock, signal: AbortSignal): Promise<KernelFigures> {
  try {
    const read = (name: string) => readFile(`/proc/${name}`, { encoding: 'utf8', signal })
    const [meminfo, before] = [await read('meminfo'), await read('stat')]
    await clock.sleep(sampleMilliseconds, signal)
    return { ...unknown, freeMemory: availableMemory(meminfo), idle: idleShare(before, await read('stat')) }
  } catch {
    signal.throwIfAborted()
    return unknown
  }
}

function servicesIn(containers: readonly Pick<ObservedContainer, 'labels'>[]): string[] {
  return containers.flatMap(({ labels }) => labels.service ?? [])
}

/** Reads the figures inside a container of the region, one of these services. Until one runs, they are unknown. */
async function figuresInside(
  engine: Engine,
  stackId: string,
  services: readonly string[],
  signal: AbortSignal,
): Promise<KernelFigures> {
  const [reader] = readingServices.flatMap(({ name, path }) =>
    services.filter((service) => name.test(service)).map((service) => ({ service, path })),
  )
  if (reader === undefined) return unknown
  try {
    const { stdout } = await engine.exec(stackId, reader.service, programOn(reader.path), { signal })
    const [meminfo = '', before = '', after = '', df = ''] = stdout.split(`${separator}\n`)
    return { freeMemory: availableMemory(meminfo), idle: idleShare(before, after), disk: diskSpace(df) }
  } catch (error) {
    signal.throwIfAborted()
    if (isUnreachable(error)) throw error
    return unknown
  }
}
