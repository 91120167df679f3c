// Reads what a tenant's own services use at present from their engine.
import type { Clock } from '../platform/clock.ts'
import { callEngine } from '../engines/index.ts'
import type { TenantStatusSource } from '../health/index.ts'
import type { ComponentUsage, Usage } from './usage.ts'

/** The volume of each service (see `stack-for.ts`). */
const volumes = { postgres: 'data', runtime: 'files' } as const

/**
 * Returns the services' usage, with null for unknown values. Never fails.
 * @param statusSource undefined for a past month, which the engine knows nothing about
 */
export async function componentUsage(
  clock: Pick<Clock, 'timeout'>,
  statusSource: TenantStatusSource | undefined,
): Promise<NonNullable<Usage['components']>> {
  const engine = statusSource?.engine
  const id = statusSource?.snapshot.id
  const [stats, bytes] =
    engine === undefined || id === undefined
      ? []
      : await Promise.all([
          callEngine(clock, (signal) => engine.stats(id, signal)).catch(() => undefined),
          callEngine(clock, (signal) => engine.volumeBytes(id, signal)).catch(() => undefined),
        ])
  const usage = (service: keyof typeof volumes): ComponentUsage => {
    const reading = stats?.[service]
    return {
      cpu_seconds: reading === undefined ? null : reading.cpuNanoseconds / 1e9,
      memory_bytes: reading?.memoryBytes ?? null,
      disk_bytes: bytes?.[volumes[service]] ?? null,
    }
  }
  return { postgres: usage('postgres'), runtime: usage('runtime') }
}
