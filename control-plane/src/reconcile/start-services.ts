// Starts services of a tenant's own for a tenant that shares those of its region, which a move gives it.
import { EngineError } from '../engines/index.ts'
import { allocateServices, convergeServices, type ServiceRun } from './converge-services.ts'
import { Observations } from './observations.ts'
import type { Snapshot } from './reconcile-store.ts'

const maxSubnets = 5

type StartRun = Omit<ServiceRun, 'rejectedSubnets' | 'observations'>

/**
 * Starts the services, and waits for Postgres. No runtime serves the tenant from them before its isolation changes.
 * @param tenant the tenant as it will be
 * @throws EngineError
 */
export async function startServices(tenant: Snapshot, run: StartRun, signal: AbortSignal): Promise<void> {
  const rejectedSubnets = new Map<string, number>()
  const whole = { ...run, rejectedSubnets, observations: new Observations(run.clock) }
  let allocated = tenant
  for (let tries = 1; ; tries++) {
    allocated = await allocateServices(allocated, whole, signal)
    try {
      while (!(await convergeServices(allocated, whole, signal))) signal.throwIfAborted()
      break
    } catch (error) {
      if (!(error instanceof EngineError && error.code === 'SUBNET_TAKEN') || tries >= maxSubnets) throw error
    }
  }
  await run.region.awaitDatabase(allocated, signal)
}
