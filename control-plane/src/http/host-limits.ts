// Limits beside what the host has: more than that would never come to be.
import type { HostInfo } from '../engines/container-host.ts'
import { ControlError } from '../errors.ts'
import type { SizeChanges } from '../tenants/tenant-store.ts'

/** @throws ControlError LIMITS_BEYOND_HOST that names the first */
export function checkHostLimits(changes: SizeChanges, { memoryBytes, cpus }: Pick<HostInfo, 'memoryBytes' | 'cpus'>): void {
  for (const component of ['postgres', 'runtime'] as const) {
    const { memoryBytes: memory = 0, cpuMillis = 0 } = changes[component] ?? {}
    if (memory > memoryBytes) refuse(`${component}.memory_bytes`, memory, memoryBytes)
    if (cpuMillis > cpus * 1000) refuse(`${component}.cpu_millis`, cpuMillis, cpus * 1000)
  }
}

function refuse(limit: string, asked: number, there: number): never {
  throw new ControlError('LIMITS_BEYOND_HOST', `field "resources.${limit}" is ${asked}, but the host has ${there}`)
}
