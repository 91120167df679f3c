// What is asked for beside what the host has: more than that would never come to be, or take the last of everybody's disk.
import type { Clock } from '../platform/clock.ts'
import type { HostInfo, Engine } from '../engines/index.ts'
import { ControlError } from '../platform/errors.ts'
import type { SizeChanges } from './tenant-store.ts'

/** @throws ControlError LIMITS_BEYOND_HOST that names the first */
export function checkHostLimits(
  changes: SizeChanges,
  { memoryBytes, cpus }: Pick<HostInfo, 'memoryBytes' | 'cpus'>,
): void {
  for (const component of ['postgres', 'runtime'] as const) {
    const { memoryBytes: memory = 0, cpuMillis = 0 } = changes[component] ?? {}
    if (memory > memoryBytes) reject(`${component}.memory_bytes`, memory, memoryBytes)
    if (cpuMillis > cpus * 1000) reject(`${component}.cpu_millis`, cpuMillis, cpus * 1000)
  }
}

const leastFreeBytes = 2 * 2 ** 30
const leastFreeShare = 0.05

/** @throws ControlError HOST_DISK_FULL */
export function checkHostDisk(region: string, { freeBytes, totalBytes }: NonNullable<HostInfo['disk']>): void {
  if (freeBytes >= leastFreeBytes && freeBytes >= totalBytes * leastFreeShare) return
  const free = (freeBytes / 1e9).toFixed(1)
  throw new ControlError(
    'HOST_DISK_FULL',
    `the host of region "${region}" has ${free} GB of disk left: it takes no more tenants with services of their own`,
  )
}

const timeoutMilliseconds = 1_000
const freshMilliseconds = 10_000

interface HostDiskDeps {
  engineOf: (region: string) => Pick<Engine, 'info'> | undefined
  clock: Pick<Clock, 'timeout'>
  now: () => Date
}

/**
 * What is known of a region's disk, at most 10 s old; undefined where nothing is. An engine that does not answer keeps
 * nobody from asking for a tenant.
 */
export function hostDiskReader({ engineOf, clock, now }: HostDiskDeps): (region: string) => Promise<HostInfo['disk']> {
  const known = new Map<string, { disk: Promise<HostInfo['disk']>; until: number }>()
  return async (region) => {
    const found = known.get(region)
    if (found !== undefined && found.until > now().getTime()) return found.disk
    const disk = Promise.resolve(engineOf(region)?.info(clock.timeout(timeoutMilliseconds))).then(
      (info) => info?.disk,
      () => undefined,
    )
    known.set(region, { disk, until: now().getTime() + freshMilliseconds })
    return disk
  }
}

function reject(limit: string, requested: number, there: number): never {
  throw new ControlError('LIMITS_BEYOND_HOST', `field "resources.${limit}" is ${requested}, but the host has ${there}`)
}
