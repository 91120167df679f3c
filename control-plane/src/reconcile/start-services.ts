// Starts the services that a move gives a tenant: its first ones, or others in addition to those that it has.
import { EngineError } from '../engines/index.ts'
import { assignMovingHosts } from './assign-hosts.ts'
import { allocateServices, convergeServices, type ServiceRun } from './converge-services.ts'
import { Observations } from './observations.ts'
import type { Snapshot } from './reconcile-store.ts'

const maxSubnets = 5

type StartRun = Omit<ServiceRun, 'rejectedSubnets' | 'observations'>

/**
 * Starts the services, and waits for the Postgres of the tenant's isolation. No runtime serves the tenant from others before its isolation
 * changes.
 * @param tenant the tenant as it will be, or with the services that it gets in addition
 * @throws EngineError REGION_FULL before anything is created, and others
 */
export async function startServices(tenant: Snapshot, run: StartRun, signal: AbortSignal): Promise<void> {
  const rejectedSubnets = new Map<string, number>()
  const whole = { ...run, rejectedSubnets, observations: new Observations(run.clock) }
  let allocated = tenant
  for (let tries = 1; ; tries++) {
    allocated = await allocateServices(allocated, whole, signal)
    allocated = await assignMovingHosts(allocated, { ...run, placements: run.store.placements }, signal)
    if (allocated.moving !== undefined)
      await run.region.openCluster({ id: tenant.id, isolation: allocated.moving.isolation }, signal)
    try {
      while (!(await convergeServices(allocated, whole, signal))) signal.throwIfAborted()
      break
    } catch (error) {
      if (!(error instanceof EngineError && error.code === 'SUBNET_TAKEN') || tries >= maxSubnets) throw error
    }
  }
  await run.region.awaitDatabase(allocated, signal)
}
