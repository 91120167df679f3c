// What a tenant has stored and used now, as its runtime says.
import type { TenantStorageUsage } from '@tenantry/contract'
import type { Clock } from '../platform/clock.ts'
import { firstResponse, type RegionProbe } from '../reconcile/index.ts'
import type { TenantStatusSource } from './tenant-sight.ts'

/** What `storedNow` needs. */
export interface StoredNowDeps {
  clock: Pick<Clock, 'now' | 'timeout'>
  probe: Pick<RegionProbe, 'tenantUsage'>
}

const runtimeMilliseconds = 2_000

/** What a tenant has stored now, as the runtime that answers first counts it; undefined when none can say within two seconds. */
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
