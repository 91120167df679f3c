// Asks the runtimes from time to time what crashes, or foreign hands, have left in their tenants' stores, for the metrics.
import type { TenantStorageState } from '@tenantry/contract'
import PQueue from 'p-queue'
import type { Clock } from '../platform/clock.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Region, StorageProbe } from '../reconcile/index.ts'
import type { RunningTenants } from '../tenants/index.ts'
import { repeat } from '../platform/repeat.ts'
import type { Log } from '../platform/log.ts'

/** What the job needs that sums up, for the metrics, what crashes have left in tenants' stores. */
export interface StorageWatchDeps {
  store: RunningTenants
  regions: ReadonlyMap<string, Pick<Region, 'config'>>
  probe: StorageProbe
  /** Sums over a region's tenants. */
  measure: (region: string, sums: TenantStorageState) => void
  clock: Clock
  log: Pick<Log, 'warn'>
}

const intervalMilliseconds = 300_000
/** Runtimes asked at once. */
const requestedAtOnce = 8

const nothing: TenantStorageState = { phantoms: 0, orphans: 0, backlog: 0 }

/** Runs while this control plane leads. */
export function watchStorage(deps: StorageWatchDeps): (leadership: Leadership) => Promise<void> {
  return async ({ lost }) => {
    await Promise.all([...deps.regions.values()].map((region) => createStorageWatch(region, deps).keep(lost)))
  }
}

export function createStorageWatch(
  { config }: Pick<Region, 'config'>,
  { store, probe, measure, clock, log }: Omit<StorageWatchDeps, 'regions'>,
) {
  const statesOf = async (signal: AbortSignal): Promise<TenantStorageState[]> => {
    const requested = new PQueue({ concurrency: requestedAtOnce })
    // Who doesn't answer now is nobody's concern here: health and the reconciler look after that.
    const request = (question: () => Promise<TenantStorageState[]>) => requested.add(() => question().catch(() => []))
    const dedicated = await store.runningTenants(config.id)
    const gateways = config.gateway_internal_urls.slice(0, 1)
    const responses = await Promise.all([
      ...config.runtime_urls.map((url) =>
        request(async () => Object.values((await probe.storageState(url, signal))?.tenants ?? {})),
      ),
      // A tenant's own runtime speaks of that tenant alone, whatever else it says.
      ...dedicated.flatMap(({ id }) =>
        gateways.map((url) =>
          request(async () => [(await probe.tenantStorageState(url, id, signal))?.tenants[id] ?? nothing]),
        ),
      ),
    ])
    return responses.flat()
  }

  /** Once. @returns after how many milliseconds to look again */
  const poll = async (signal: AbortSignal): Promise<number> => {
    measure(config.id, (await statesOf(signal)).reduce(plus, nothing))
    return intervalMilliseconds
  }

  return {
    poll,
    keep: (signal: AbortSignal): Promise<void> =>
      repeat(
        {
          clock,
          work: poll,
          onError: (error) =>
            log.warn({ region: config.id, err: error }, 'the stores could not be asked about; it is tried again'),
        },
        signal,
      ),
  }
}

function plus(a: TenantStorageState, b: TenantStorageState): TenantStorageState {
  return { phantoms: a.phantoms + b.phantoms, orphans: a.orphans + b.orphans, backlog: a.backlog + b.backlog }
}
