// Reads a tenant's present storage and usage from its runtime.
import type { TenantStorageUsage } from '@tenantry/contract'
import type { Clock } from '../platform/clock.ts'
import { firstResponse, type RegionProbe } from '../reconcile/index.ts'
import type { TenantStatusSource } from './tenant-status-source.ts'

/** The dependencies of `storedNow`. */
export interface StoredNowDeps {
  clock: Pick<Clock, 'now' | 'timeout'>
  probe: Pick<RegionProbe, 'tenantUsage'>
}

const runtimeMilliseconds = 2_000

/**
 * Returns a tenant's present storage from the first runtime that responds; undefined when none does within two seconds.
 */
export async function storedNow(
  { clock, probe }: StoredNowDeps,
  statusSource: TenantStatusSource | undefined,
): Promise<TenantStorageUsage | undefined> {
  if (statusSource === undefined) return undefined
  const { snapshot, region } = statusSource
  const signal = clock.timeout(runtimeMilliseconds)
  return firstResponse(region.runtimeUrls(snapshot), (url) => probe.tenantUsage(url, snapshot.id, signal)).catch(
    () => undefined,
  )
}
