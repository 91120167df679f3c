// Measures the host of a region: with the engine's description, and with the kernel's own figures. Those of a Docker Engine on
// another machine are read inside a container of the region, which shows the host's kernel.
import { readFile } from 'node:fs/promises'
import { availableParallelism, hostname, totalmem } from 'node:os'
import type { Clock } from '../platform/clock.ts'
import { type Engine, type HostInfo, isUnreachable } from '../engines/index.ts'
import type { Region } from '../reconcile/index.ts'
import { type Amounts, availableMemory, diskSpace, idleShare, isTenants, type Measurement, reservedBy } from './host.ts'

/** The time between the two readings of the CPU's idle time. */
const sampleMilliseconds = 1_000
/** Marks the end of each part of the program's output. */
const separator = '--'
/** The service of a region's own stack that the program runs in. It is on the disk with the volumes. */
const readingService = 'postgres'
const program = [
  'sh',
  '-c',
  `cat /proc/meminfo; echo ${separator}; head -n 1 /proc/stat; sleep ${sampleMilliseconds / 1000}; echo ${separator}; ` +
    `head -n 1 /proc/stat; echo ${separator}; df -Pk /var/lib/postgresql`,
]

/** The kernel's figures of a host. */
interface KernelFigures {
  freeMemory: number | null
  idle: number | null
  disk: Amounts
}

const unknown: KernelFigures = { freeMemory: null, idle: null, disk: { total: null, free: null } }

/** Measures a region's host. @throws EngineError if the engine cannot be reached */
export async function measureHost(region: Region, clock: Clock, signal: AbortSignal): Promise<Measurement> {
  const { engine, config } = region
  const [info, observed, kernel] = await Promise.all([
    engine?.info(signal),
    engine?.observe(undefined, signal),
    config.docker === undefined || engine === undefined
      ? ownFigures(clock, signal)
      : figuresInside(engine, region.stackId, signal),
  ])
  const containers = observed?.containers ?? []
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

/** Reads the figures inside a container of the region. Until that runs, they are unknown. */
async function figuresInside(engine: Engine, stackId: string, signal: AbortSignal): Promise<KernelFigures> {
  try {
    const { stdout } = await engine.exec(stackId, readingService, program, { signal })
    const [meminfo = '', before = '', after = '', df = ''] = stdout.split(`${separator}\n`)
    return { freeMemory: availableMemory(meminfo), idle: idleShare(before, after), disk: diskSpace(df) }
  } catch (error) {
    signal.throwIfAborted()
    if (isUnreachable(error)) throw error
    return unknown
  }
}
