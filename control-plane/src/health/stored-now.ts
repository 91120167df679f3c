// What a tenant has stored and used now, as its runtime says.
import type { TenantStorageUsage } from '@tenantry/contract'
import type { Clock } from '../platform/clock.ts'
import { firstAnswer, type RegionProbe } from '../reconcile/index.ts'
import type { TenantSight } from './tenant-sight.ts'

/** What `storedNow` needs. */
export interface StoredNowDeps {
  clock: Pick<Clock, 'now' | 'timeout'>
  probe: Pick<RegionProbe, 'tenantUsage'>
}

const runtimeMilliseconds = 2_000

/** What a tenant has stored now, as the runtime that answers first counts it; undefined when none can say within two seconds. */
export async function storedNow(
  { clock, probe }: StoredNowDeps,
  sight: TenantSight | undefined,
): Promise<TenantStorageUsage | undefined> {
  if (sight === undefined) return undefined
  const { snapshot, region } = sight
  const signal = clock.timeout(runtimeMilliseconds)
  return firstAnswer(region.runtimeUrls(snapshot), (url) => probe.tenantUsage(url, snapshot.id, signal)).catch(
    () => undefined,
  )
}
