// Compares requested limits with the host's: larger ones could never be granted, or would use the last of the shared disk.
import type { Clock } from '../platform/clock.ts'
import type { HostInfo, Engine } from '../engines/index.ts'
import { ControlError } from '../platform/errors.ts'
import type { Isolation } from '../stacks/index.ts'
import type { SizeChanges } from './tenant-write.ts'

/** Checks limits. @throws ControlError LIMITS_BEYOND_HOST that names the first violation */
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

const minFreeBytes = 2 * 2 ** 30
const minFreeShare = 0.05

/** Checks that the host has disk space for another tenant. @throws ControlError HOST_DISK_FULL */
export function checkHostDisk(region: string, { freeBytes, totalBytes }: NonNullable<HostInfo['disk']>): void {
  if (freeBytes >= minFreeBytes && freeBytes >= totalBytes * minFreeShare) return
  const free = (freeBytes / 1e9).toFixed(1)
  throw new ControlError(
    'HOST_DISK_FULL',
    `The host of the region "${region}" has ${free} GB of free disk space, too little for another tenant with services of its own.`,
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
 * Creates a reader of a region's disk space, cached for 10 s; undefined if it is unknown. An engine that does not
 * respond does not prevent the creation of a tenant.
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

/** Creates the check that a region's host has disk space for a tenant of an isolation model. @throws ControlError HOST_DISK_FULL */
export function hostDiskCheck(deps: HostDiskDeps): (region: string, isolation: Isolation) => Promise<void> {
  const read = hostDiskReader(deps)
  return async (region, isolation) => {
    const disk = isolation === 'schema-per-tenant' ? undefined : await read(region)
    if (disk !== undefined) checkHostDisk(region, disk)
  }
}

function reject(limit: string, requested: number, available: number): never {
  throw new ControlError(
    'LIMITS_BEYOND_HOST',
    `Field "resources.${limit}" is ${requested}, but the host has ${available}.`,
  )
}
