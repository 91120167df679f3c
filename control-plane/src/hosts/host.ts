// The hosts of a region: what each has, what its tenants reserve, and what is really free. Pure.
import type { ObservedHost } from '../engines/index.ts'

/** Amounts of memory or disk in bytes, or of CPU in thousandths of a core. Free is null if it could not be read. */
export interface Amounts {
  total: number | null
  free: number | null
}

/** Sums of the limits of running services. */
export interface Reserved {
  cpuMillis: number
  memoryBytes: number
}

/** One measurement of a host. */
export interface Measurement {
  /** The name that the host itself reports. */
  name: string
  apiVersion: string | null
  cpuMillis: Amounts
  memoryBytes: Amounts
  /** The disk with the volumes. */
  diskBytes: Amounts
  /** Limits of the services of tenants, and of all other services of the installation. */
  reservedByTenants: Reserved
  reservedByPlatform: Reserved
  /** Warnings of the engine for operators. */
  warnings: string[]
}

/** The last measurement of a host and the last attempt. */
export interface HostRecord {
  regionId: string
  /** ID of the host in a region with several; empty in a region with one. */
  hostId: string
  /** The time of the last successful measurement; undefined before the first one. */
  measuredAt: Date | undefined
  measurement: Measurement | undefined
  /** The reason why the last attempt has failed; undefined if it succeeded. */
  error: string | undefined
}

/** A service of a tenant on a host. */
export interface PlacedService {
  tenantId: string
  service: string
  hostId: string
  /** The memory that it reserves. */
  memoryBytes: number
}

/** The tenants of a region. */
export interface TenantCounts {
  total: number
  /** Tenants with services of their own. */
  dedicated: number
  /** The sum of the quotas of stored bytes. */
  quotaBytes: bigint
  /** Tenants whose plan has no such quota, and which the sum does not contain. */
  unlimited: number
}

/** Returns the memory that programs can get without swapping, from the text of `/proc/meminfo`; null for another text. */
export function availableMemory(meminfo: string): number | null {
  const kibibytes = /^MemAvailable:\s+(\d+) kB$/m.exec(meminfo)?.[1]
  return kibibytes === undefined ? null : Number(kibibytes) * 1024
}

/**
 * Returns the share of the CPU time that was idle between two texts of `/proc/stat`; null if they have no such time. Waits for
 * disks count as idle.
 */
export function idleShare(before: string, after: string): number | null {
  const [first, second] = [cpuTimes(before), cpuTimes(after)]
  if (first === undefined || second === undefined || second.all <= first.all) return null
  return Math.min(Math.max((second.idle - first.idle) / (second.all - first.all), 0), 1)
}

function cpuTimes(stat: string): { idle: number; all: number } | undefined {
  // user, nice, system, idle, iowait, irq, softirq, steal. What virtual machines use is in user and nice already.
  const times = /^cpu +(\d+(?: \d+){7})/m.exec(stat)?.[1]?.split(' ').map(Number)
  if (times === undefined) return undefined
  return { idle: (times[3] ?? 0) + (times[4] ?? 0), all: times.reduce((sum, time) => sum + time, 0) }
}

/** Returns the space of the disk in the output of `df -Pk PATH`; nulls for another text. */
export function diskSpace(df: string): Amounts {
  const [, blocks, available] = /^\S.*?\s+(\d+)\s+\d+\s+(\d+)\s+\d+%\s/m.exec(df) ?? []
  if (blocks === undefined || available === undefined) return { total: null, free: null }
  return { total: Number(blocks) * 1024, free: Number(available) * 1024 }
}

/** Adds up the limits of the running containers whose stack satisfies a condition. */
export function reservedBy(containers: ObservedHost['containers'], isCounted: (stack: string) => boolean): Reserved {
  const running = containers.filter(({ state, labels }) => state === 'running' && isCounted(labels.stack))
  return {
    cpuMillis: running.reduce((sum, { resources }) => sum + resources.cpuMillis, 0),
    memoryBytes: running.reduce((sum, { resources }) => sum + resources.memoryBytes, 0),
  }
}

/** Whether a stack belongs to a tenant, rather than to a region or a backup that is verified. */
export function isTenants(stack: string): boolean {
  return stack.startsWith('t_')
}
