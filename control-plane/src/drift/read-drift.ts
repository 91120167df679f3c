// Compares what exists of a tenant on its engine with what should exist. A tenant without services of its own has
// nothing there.
import { differences, EngineError, callEngine, repairOf } from '../engines/index.ts'
import type { Drift, RepairableDifference } from './drift.ts'
import { hasBegun } from '../reconcile/index.ts'
import { statusSourceOf, type StatusDeps, type TenantStatusSource } from '../health/index.ts'
import type { Tenant } from '../tenants/index.ts'

/** The difference of a tenant that was not begun, which has no specification to compare with. */
const notBegun: RepairableDifference = {
  component: 'services',
  field: 'existence',
  desired: 'present',
  observed: 'absent',
  repair: null,
}

/** Reads the drift of tenants. */
export type DriftReader = ReturnType<typeof createDriftReader>

/** Creates the reader of a tenant's drift. A tenant without services of its own never has any. */
export function createDriftReader(deps: StatusDeps) {
  return {
    /**
     * Reads a tenant's drift.
     * @throws EngineError when the engine can't be reached: unknown differences are never reported as none
     */
    async read(tenant: Tenant): Promise<Drift> {
      const found =
        tenant.isolation === 'schema-per-tenant' ? [] : await differencesOf(deps, await statusSourceOf(deps, tenant))
      return {
        tenant_id: tenant.id,
        policy: tenant.driftPolicy,
        observed_at: deps.clock.now().toISOString(),
        drifted: found.length > 0,
        differences: found,
      }
    },
  }
}

async function differencesOf(
  { clock }: StatusDeps,
  statusSource: TenantStatusSource | undefined,
): Promise<RepairableDifference[]> {
  if (statusSource?.engine === undefined) throw new EngineError('ENGINE_FAILED', "The tenant's region has no engine.")
  const { snapshot, region, engine } = statusSource
  if (!hasBegun(snapshot, region)) return [notBegun]
  return callEngine(clock, async (signal) => {
    const [stack, host] = await Promise.all([region.stack(snapshot, signal), engine.observe(snapshot.id, signal)])
    return differences(stack, host).map((difference) => {
      const repair = repairOf(stack, host, difference)
      // The services of a cluster are replaced one by one in an order that considers all of them.
      const isWhole = repair.targets.some(({ field }) => field === null)
      return { ...difference, repair: isWhole && snapshot.isolation === 'cluster-per-tenant' ? null : repair }
    })
  })
}
