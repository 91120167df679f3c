// Measures the volumes of tenants that have their own, says which are nearly full, and suspends those that hold far more
// than their plan allows: the disk is everybody's.
import type { Clock } from '../platform/clock.ts'
import type { Engine } from '../engines/index.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Region } from '../reconcile/index.ts'
import type { Condition } from '../tenants/index.ts'
import { isChanged, judgeDisk, suspendReason, type WatchedTenant } from './disk-watch-plan.ts'
import { repeat } from '../platform/repeat.ts'
import type { Log } from '../platform/log.ts'

/** Every write is the leader's: `LeadershipLost` when it is not any more. */
export interface DiskWatchStore {
  watchedTenants(regionId: string): Promise<WatchedTenant[]>
  /** In place of what was said before; the tenant's other conditions stay. */
  reportDisk(tenantId: string, condition: Condition | undefined, epoch: bigint): Promise<void>
  /** @returns false when something was asked of the tenant since that generation */
  suspend(tenantId: string, generation: number, reason: string, epoch: bigint): Promise<boolean>
}

interface DiskWatchDeps {
  store: DiskWatchStore
  regions: ReadonlyMap<string, Pick<Region, 'engine'>>
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
}

const intervalMilliseconds = 60_000
/** The engine walks every file for it: most of the time it does something else. */
const restFactor = 10
const measureMilliseconds = 300_000

/** Runs while this control plane leads. */
export function watchDisks(deps: DiskWatchDeps): (leadership: Leadership) => Promise<void> {
  return async ({ epoch, lost }) => {
    const watches = [...deps.regions].flatMap(([region, { engine }]) =>
      engine === undefined ? [] : [createDiskWatch(region, engine, deps, epoch)],
    )
    await Promise.all(watches.map((watch) => watch.keep(lost)))
  }
}

export function createDiskWatch(
  region: string,
  engine: Pick<Engine, 'volumeBytes'>,
  { store, clock, log }: Omit<DiskWatchDeps, 'regions'>,
  epoch: bigint,
) {
  const treat = async (tenant: WatchedTenant, bytes: number): Promise<void> => {
    const { id, generation, reported } = tenant
    const { condition, suspend } = judgeDisk(tenant, bytes, clock.now())
    if (isChanged(reported, condition)) await store.reportDisk(id, condition, epoch)
    if (suspend && (await store.suspend(id, generation, suspendReason, epoch)))
      log.warn({ region, tenant: id, bytes }, 'a tenant takes more disk than its plan allows; it is suspended')
  }

  /** Once: everybody's volumes, in one measurement. @returns after how many milliseconds to look again */
  const poll = async (signal: AbortSignal): Promise<number> => {
    const begin = clock.now().getTime()
    const tenants = await store.watchedTenants(region)
    const measured = AbortSignal.any([signal, clock.timeout(measureMilliseconds)])
    // Asked at once, they are answered by one measurement of the engine's.
    const bytes = await Promise.all(tenants.map(({ id }) => engine.volumeBytes(id, measured)))
    const took = clock.now().getTime() - begin
    for (const [at, tenant] of tenants.entries())
      await treat(
        tenant,
        Object.values(bytes[at] ?? {}).reduce((sum, size) => sum + size, 0),
      )
    return Math.max(intervalMilliseconds, took * restFactor)
  }

  return {
    poll,
    keep: (signal: AbortSignal): Promise<void> =>
      repeat(
        {
          clock,
          work: poll,
          onError: (error) =>
            log.warn({ region, err: error }, 'the disk of the tenants could not be measured; it is tried again'),
        },
        signal,
      ),
  }
}
