// From a tenant to where it can be looked at: its region, its engine, and what the reconciler knows of it.
import type { Clock } from '../platform/clock.ts'
import type { Engine } from '../engines/index.ts'
import { type ReconcileStore, type Snapshot, isDedicated, type Region } from '../reconcile/index.ts'
import type { Tenant } from '../tenants/index.ts'

/** What `statusSourceOf` needs. */
export interface StatusDeps {
  regions: ReadonlyMap<string, Region>
  store: Pick<ReconcileStore, 'snapshot'>
  clock: Pick<Clock, 'now' | 'timeout'>
}

/** A tenant at one instant, and where it can be looked at. */
export interface TenantStatusSource {
  snapshot: Snapshot
  region: Region
  /** Of services of its own; undefined for a tenant without. */
  engine: Engine | undefined
}

/**
 * Reads a tenant and finds its region and engine.
 * @returns undefined when the tenant has gone meanwhile, or its region was taken out of the configuration
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
