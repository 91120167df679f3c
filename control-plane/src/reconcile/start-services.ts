// Starts services of a tenant's own for a tenant that shares those of its region, which a move gives it.
import { EngineError } from '../engines/index.ts'
import { allocateServices, convergeServices } from './converge-services.ts'
import { Observations } from './observations.ts'
import type { Reconciliation } from './reconciliation.ts'
import type { Snapshot } from './reconcile-store.ts'

const maxSubnets = 5

type ServiceRun = Pick<Reconciliation, 'store' | 'region' | 'failpoint' | 'clock' | 'epoch'>

/**
 * Starts the services with an empty database. No runtime serves the tenant from them before its isolation changes.
 * @param tenant the tenant as it will be
 * @returns the tenant with the images and the subnet of its services
 * @throws EngineError
 */
export async function startServices(tenant: Snapshot, run: ServiceRun, signal: AbortSignal): Promise<Snapshot> {
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
  await run.region.home(allocated).prepare(() => undefined)
  return allocated
}
