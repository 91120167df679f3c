// Reads what a tenant's own services use at present from their engine.
import type { Clock } from '../platform/clock.ts'
import { callEngine } from '../engines/index.ts'
import type { TenantStatusSource } from '../health/index.ts'
import { type Isolation, serviceVolumes } from '../stacks/index.ts'
import type { ComponentUsage, Usage } from './usage.ts'

/**
 * Returns the services' usage, with null for unknown values. Never fails.
 * @param statusSource undefined for a past month, which the engine knows nothing about
 */
export async function componentUsage(
  clock: Pick<Clock, 'timeout'>,
  statusSource: TenantStatusSource | undefined,
  isolation: Isolation,
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
  const usage = (service: string, volume: string | undefined): ComponentUsage => {
    const reading = stats?.[service]
    return {
      cpu_seconds: reading === undefined ? null : reading.cpuNanoseconds / 1e9,
      memory_bytes: reading?.memoryBytes ?? null,
      disk_bytes: (volume === undefined ? undefined : bytes?.[volume]) ?? null,
    }
  }
  const services = Object.entries(serviceVolumes(isolation))
  return Object.fromEntries(services.map(([service, volume]) => [service, usage(service, volume)]))
}
