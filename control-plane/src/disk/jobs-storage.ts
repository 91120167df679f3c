// Reads from the runtimes how many orphaned and missing files their tenants' stores have, for the metrics.
import type { TenantStorageState } from '@tenantry/contract'
import PQueue from 'p-queue'
import type { Clock } from '../platform/clock.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Region, StorageProbe } from '../reconcile/index.ts'
import type { RunningTenants } from '../tenants/index.ts'
import { repeat } from '../platform/repeat.ts'
import type { Log } from '../platform/log.ts'

/** The dependencies of the job that adds up the states of tenants' stores, for the metrics. */
export interface StorageWatchDeps {
  store: RunningTenants
  regions: ReadonlyMap<string, Pick<Region, 'config' | 'gatewayUrls'>>
  probe: StorageProbe
  /** Receives the sums over a region's tenants. */
  measure: (region: string, sums: TenantStorageState) => void
  clock: Clock
  log: Pick<Log, 'warn'>
}

const intervalMilliseconds = 300_000
/** The maximum number of simultaneous requests to runtimes. */
const maxConcurrentRequests = 8

const nothing: TenantStorageState = { phantoms: 0, orphans: 0, backlog: 0 }

/** Creates the job, which runs while this control plane leads. */
export function watchStorage(deps: StorageWatchDeps): (leadership: Leadership) => Promise<void> {
  return async ({ lost }) => {
    await Promise.all([...deps.regions.values()].map((region) => createStorageWatch(region, deps).run(lost)))
  }
}

export function createStorageWatch(
  region: Pick<Region, 'config' | 'gatewayUrls'>,
  { store, probe, measure, clock, log }: Omit<StorageWatchDeps, 'regions'>,
) {
  const { config } = region
  const statesOf = async (signal: AbortSignal): Promise<TenantStorageState[]> => {
    const queue = new PQueue({ concurrency: maxConcurrentRequests })
    // Runtimes that do not respond are left out here. Health checks and the reconciler handle them.
    const readStates = (call: () => Promise<TenantStorageState[]>) => queue.add(() => call().catch(() => []))
    const running = await store.runningTenants(config.id)
    const dedicated = running.filter(({ isolation }) => isolation === 'database-per-tenant')
    const gateways = region.gatewayUrls().slice(0, 1)
    const responses = await Promise.all([
      ...config.runtime_urls.map((url) =>
        readStates(async () => Object.values((await probe.storageState(url, signal))?.tenants ?? {})),
      ),
      // A tenant's own runtime reports only on that tenant, so other entries are ignored.
      ...dedicated.flatMap(({ id }) =>
        gateways.map((url) =>
          readStates(async () => [(await probe.tenantStorageState(url, id, signal))?.tenants[id] ?? nothing]),
        ),
      ),
    ])
    return responses.flat()
  }

  /**
   * Polls once.
   * @returns the milliseconds until the next poll
   */
  const poll = async (signal: AbortSignal): Promise<number> => {
    measure(config.id, (await statesOf(signal)).reduce(plus, nothing))
    return intervalMilliseconds
  }

  return {
    poll,
    run: (signal: AbortSignal): Promise<void> =>
      repeat(
        {
          clock,
          work: poll,
          onError: (error) =>
            log.warn(
              { region: config.id, err: error },
              "The state of the tenants' stores could not be read. The read is retried.",
            ),
        },
        signal,
      ),
  }
}

function plus(a: TenantStorageState, b: TenantStorageState): TenantStorageState {
  return { phantoms: a.phantoms + b.phantoms, orphans: a.orphans + b.orphans, backlog: a.backlog + b.backlog }
}
