// Removes the files of a tenant from the store of the runtimes that tenants share.
import type { MoveDeps } from './move-deps.ts'
import { sharedRuntimesOf } from './move-regions.ts'

const unknownMilliseconds = 10_000
const pollMilliseconds = 50

/** Removes the tenant's files from the shared runtimes of a region, which do not serve it, and from the bucket that they use. */
export async function removeSharedFiles(
  regionId: string,
  tenantId: string,
  deps: Pick<MoveDeps, 'regions' | 'probe' | 'clock'>,
  signal: AbortSignal,
): Promise<void> {
  const { probe, clock } = deps
  const bounded = AbortSignal.any([signal, clock.timeout(unknownMilliseconds)])
  for (const url of sharedRuntimesOf(regionId, tenantId, deps)) {
    while ((await probe.tenantHealth(url, tenantId, bounded)) !== undefined)
      await clock.sleep(pollMilliseconds, bounded)
    await probe.removeData(url, tenantId, signal)
  }
}
