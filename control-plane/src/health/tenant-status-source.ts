// Finds the sources of a tenant's status: its region, its engine, and the reconciler's snapshot.
import type { Clock } from '../platform/clock.ts'
import type { Engine } from '../engines/index.ts'
import { type ReconcileStore, type Snapshot, isDedicated, type Region } from '../reconcile/index.ts'
import type { Tenant } from '../tenants/index.ts'

/** The dependencies of `statusSourceOf`. */
export interface StatusDeps {
  regions: ReadonlyMap<string, Region>
  store: Pick<ReconcileStore, 'snapshot'>
  clock: Pick<Clock, 'now' | 'timeout'>
}

/** The sources of a tenant's status at one instant. */
export interface TenantStatusSource {
  snapshot: Snapshot
  region: Region
  /** The engine of the tenant's own services; undefined for a tenant without. */
  engine: Engine | undefined
}

/**
 * Reads a tenant and finds its region and engine.
 * @returns undefined when the tenant was removed meanwhile, or its region is not configured any more
 */
export async function statusSourceOf(
  { regions, store }: StatusDeps,
  tenant: Pick<Tenant, 'id' | 'region'>,
): Promise<TenantStatusSource | undefined> {
  const region = regions.get(tenant.region)
  const snapshot = region === undefined ? undefined : await store.snapshot(tenant.id)
  if (region === undefined || snapshot === undefined) return undefined
  return { snapshot, region, engine: isDedicated(snapshot) ? region.engine : undefined }
}
