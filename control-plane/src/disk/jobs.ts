// Measures the volumes of tenants that have their own, reports which are nearly full, and suspends tenants that use far
// more disk than their plan allows, because all tenants share the disk.
import type { Clock } from '../platform/clock.ts'
import type { Engine } from '../engines/index.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Region } from '../reconcile/index.ts'
import { chargeableBytes, isChanged, judgeDisk, suspendReason, type WatchedTenant } from './disk-watch-plan.ts'
import type { DiskWatchStore } from './store.ts'
import { repeat } from '../platform/repeat.ts'
import type { Log } from '../platform/log.ts'

interface DiskWatchDeps {
  store: DiskWatchStore
  regions: ReadonlyMap<string, Pick<Region, 'engine'>>
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
}

const intervalMilliseconds = 60_000
/**
 * The rest between measurements, relative to their duration. The engine reads every file, and should be idle most of
 * the time.
 */
const restFactor = 10
const measureMilliseconds = 300_000

/** Creates the job, which runs while this control plane leads. */
export function watchDisks(deps: DiskWatchDeps): (leadership: Leadership) => Promise<void> {
  return async ({ epoch, lost }) => {
    const watches = [...deps.regions].flatMap(([region, { engine }]) =>
      engine === undefined ? [] : [createDiskWatch(region, engine, deps, epoch)],
    )
    await Promise.all(watches.map((watch) => watch.run(lost)))
  }
}

export function createDiskWatch(
  region: string,
  engine: Pick<Engine, 'volumeBytes'>,
  { store, clock, log }: Omit<DiskWatchDeps, 'regions'>,
  epoch: bigint,
) {
  const applyVerdict = async (tenant: WatchedTenant, bytes: number): Promise<void> => {
    const { id, generation, reported } = tenant
    const { condition, suspend } = judgeDisk(tenant, bytes, clock.now())
    if (isChanged(reported, condition)) await store.reportDisk(id, condition, epoch)
    if (suspend && (await store.suspend(id, generation, suspendReason, epoch)))
      log.warn({ region, tenant: id, bytes }, 'A tenant was suspended, because it uses more disk than its plan allows.')
  }

  /**
   * Polls once: measures the volumes of all tenants in one measurement.
   * @returns the milliseconds until the next poll
   */
  const poll = async (signal: AbortSignal): Promise<number> => {
    const begin = clock.now().getTime()
    const tenants = await store.watchedTenants(region)
    const measured = AbortSignal.any([signal, clock.timeout(measureMilliseconds)])
    // The engine serves simultaneous calls with one measurement.
    const bytes = await Promise.all(tenants.map(({ id }) => engine.volumeBytes(id, measured)))
    const took = clock.now().getTime() - begin
    for (const [at, tenant] of tenants.entries()) await applyVerdict(tenant, chargeableBytes(bytes[at] ?? {}))
    return Math.max(intervalMilliseconds, took * restFactor)
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
              { region, err: error },
              'The disk use of the tenants could not be measured. The measurement is retried.',
            ),
        },
        signal,
      ),
  }
}
