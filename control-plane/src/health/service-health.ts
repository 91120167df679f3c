// From a container as it was seen to the health of a service. Pure.
import type { HealthStatus } from '@tenantry/contract'
import type { ObservedContainer } from '../engines/index.ts'
import type { ServiceHealth } from './health-reader.ts'

/** @param isWanted whether it should run; a paused or suspended tenant's services should not */
export function serviceHealth(
  container: ObservedContainer | undefined,
  isWanted: boolean,
  observedAt: Date,
): ServiceHealth {
  const [status, message] = judged(container, isWanted)
  return {
    status,
    observed_at: observedAt.toISOString(),
    ...(message === undefined ? {} : { message }),
    container: container === undefined ? null : shown(container),
  }
}

export function unseenService(observedAt: Date): ServiceHealth {
  return {
    status: 'unknown',
    observed_at: observedAt.toISOString(),
    message: 'the engine can not be asked now',
    container: null,
  }
}

function judged(container: ObservedContainer | undefined, isWanted: boolean): [HealthStatus, string?] {
  if (!isWanted) return ['unknown', 'stopped, as was asked for']
  if (container === undefined) return ['unhealthy', 'there is no container of it']
  if (container.state !== 'running')
    return [
      'unhealthy',
      container.outOfMemory ? 'it was ended, because its memory was used up' : `its container is ${container.state}`,
    ]
  if (container.health === 'unhealthy') return ['unhealthy', 'its health check fails']
  return container.health === 'healthy' ? ['healthy'] : ['unknown', 'its health check has not been answered yet']
}

function shown({
  state,
  health,
  restarts,
  startedAt,
  exitCode,
  outOfMemory,
}: ObservedContainer): ServiceHealth['container'] {
  return { state, health, restarts, started_at: startedAt ?? null, exit_code: exitCode, out_of_memory: outOfMemory }
}

/** Of all together: one that is ill makes it ill, one that can't be seen makes it unknown. */
export function worst(statuses: readonly HealthStatus[]): HealthStatus {
  if (statuses.includes('unhealthy')) return 'unhealthy'
  return statuses.includes('unknown') ? 'unknown' : 'healthy'
}
