// Derives the health of a service from its observed container. Pure.
import type { HealthStatus } from '@tenantry/contract'
import type { ObservedContainer } from '../engines/index.ts'
import type { ServiceHealth } from './health.ts'

/**
 * Returns a service's health.
 * @param isWanted whether it should run; a paused or suspended tenant's services should not
 */
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
    message: 'the engine does not respond at present',
    container: null,
  }
}

function judged(container: ObservedContainer | undefined, isWanted: boolean): [HealthStatus, string?] {
  if (!isWanted) return ['unknown', 'stopped on request']
  if (container === undefined) return ['unhealthy', 'it has no container']
  if (container.state !== 'running')
    return [
      'unhealthy',
      container.outOfMemory ? 'it was ended because it used up its memory' : `its container is ${container.state}`,
    ]
  if (container.health === 'unhealthy') return ['unhealthy', 'its health check fails']
  return container.health === 'healthy' ? ['healthy'] : ['unknown', 'its health check has not succeeded yet']
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

/** Returns the health of all together: `unhealthy` if one is, else `unknown` if one is. */
export function worst(statuses: readonly HealthStatus[]): HealthStatus {
  if (statuses.includes('unhealthy')) return 'unhealthy'
  return statuses.includes('unknown') ? 'unknown' : 'healthy'
}
