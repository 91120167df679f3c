// Maintains a region's pools of what is made in advance: homes in shared databases, stacks with a database, and stacks with a
// cluster. Creating a tenant claims one of them, and the pool is refilled.
import { randomBytes } from 'node:crypto'
import type { Clock } from '../platform/clock.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Region } from '../reconcile/index.ts'
import type { RegionConfig } from '../regions/index.ts'
import type { Isolation } from '../stacks/index.ts'
import { warmName, newSecrets } from '../tenants/index.ts'
import type { WarmPoolStore, WarmTenant } from './store.ts'
import { repeat } from '../platform/repeat.ts'
import type { Log } from '../platform/log.ts'
import { planPool } from './warm-pool-plan.ts'

/** The dependencies of the job that makes homes and stacks in advance. */
export interface WarmPoolDeps {
  store: WarmPoolStore
  regions: ReadonlyMap<string, Pick<Region, 'config' | 'images'>>
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
  /** Receives the counts of each poll of a pool. */
  measure: (region: string, isolation: Isolation, counts: Record<WarmTenant['state'], number>) => void
}

/** A kind of tenant that is made in advance. */
interface Kind {
  /** The plan of new tenants that have the isolation by default. */
  plan: string
  sizeOf: (region: RegionConfig) => number | undefined
  /** Whether it has services of its own, from images. */
  hasImages: boolean
  pollMilliseconds: number
}

const kinds: Record<Isolation, Kind> = {
  // A home is made in a fraction of a second, and a stack in several.
  'schema-per-tenant': { plan: 'Free', sizeOf: (region) => region.warm_homes, hasImages: false, pollMilliseconds: 250 },
  'database-per-tenant': {
    plan: 'Pro',
    sizeOf: ({ docker }) => docker?.warm_stacks,
    hasImages: true,
    pollMilliseconds: 2_000,
  },
  'cluster-per-tenant': {
    plan: 'Enterprise',
    sizeOf: ({ docker }) => docker?.clusters?.warm_stacks,
    hasImages: true,
    pollMilliseconds: 2_000,
  },
}

/** Interval of the polls of a pool without a size, which may still have tenants of an earlier size. */
const emptyPoolMilliseconds = 10_000
const imagesMilliseconds = 10_000
/**
 * The maximum time for which a pool that is not empty waits for clients' creates before it makes more: both need the same
 * processors.
 */
const maxYieldMilliseconds = 10_000
const minDelayMilliseconds = 5_000
const maxDelayMilliseconds = 300_000

/** Creates the job, which runs while this control plane leads. */
export function runWarmPools(deps: WarmPoolDeps): (leadership: Leadership) => Promise<void> {
  return async (leadership) => {
    const pools = [...deps.regions.values()].flatMap((region) =>
      (Object.keys(kinds) as Isolation[]).map((isolation) => createWarmPool(region, isolation, deps, leadership.epoch)),
    )
    await Promise.all(pools.map((pool) => pool.run(leadership.lost)))
  }
}

export function createWarmPool(
  region: Pick<Region, 'config' | 'images'>,
  isolation: Isolation,
  { store, clock, log, measure }: WarmPoolDeps,
  epoch: bigint,
) {
  const { id: regionId } = region.config
  const { plan, sizeOf, hasImages, pollMilliseconds } = kinds[isolation]
  const size = sizeOf(region.config) ?? 0
  let failures = 0
  let notBefore = 0
  /** The time since which the pool has not been full; undefined for a full one. */
  let shortSince: number | undefined

  /** Returns the present images; undefined when the engine can't report them, and new stacks would fail too. */
  const presentImages = (signal: AbortSignal) =>
    size === 0 || !hasImages
      ? undefined
      : region.images(AbortSignal.any([signal, clock.timeout(imagesMilliseconds)]), isolation).catch(() => undefined)

  const countFailures = (tenants: readonly WarmTenant[]) => {
    if (tenants.some(({ state }) => state === 'failed')) {
      failures++
      notBefore = clock.now().getTime() + Math.min(minDelayMilliseconds * 2 ** (failures - 1), maxDelayMilliseconds)
    } else if (tenants.filter(({ state }) => state === 'warm').length >= size) failures = 0
  }

  /** Whether clients' creates come first. The pool serves more of them meanwhile. */
  const yields = async (tenants: readonly WarmTenant[]): Promise<boolean> => {
    const ready = tenants.filter(({ state }) => state === 'warm').length
    if (ready >= size) shortSince = undefined
    else shortSince ??= clock.now().getTime()
    if (ready === 0 || shortSince === undefined) return false
    return clock.now().getTime() - shortSince < maxYieldMilliseconds && (await store.hasCreates(regionId))
  }

  const make = async () => {
    const id = `t_${randomBytes(10).toString('hex')}`
    await store.addWarm({ id, name: warmName(id), plan, region: regionId, isolation, secrets: newSecrets() }, epoch)
    log.info({ region: regionId, tenant: id }, 'A tenant is created in advance.')
  }

  /** Polls once: reads the pool, and begins to make or remove stacks. */
  const poll = async (signal: AbortSignal): Promise<void> => {
    const tenants = await store.warmTenants(regionId, isolation)
    measure(regionId, isolation, countStates(tenants))
    if (size === 0 && tenants.length === 0) return
    const images = await presentImages(signal)
    countFailures(tenants)
    const mayMake = (images !== undefined || !hasImages) && clock.now().getTime() >= notBefore
    const todo = planPool(tenants, { size, images, mayMake: mayMake && !(await yields(tenants)) })
    for (const id of todo.remove) {
      if (await store.removeWarm(id, epoch))
        log.info({ region: regionId, tenant: id }, 'A tenant that was created in advance is removed.')
    }
    for (let made = 0; made < todo.make; made++) await make()
  }

  return {
    poll,
    run: (signal: AbortSignal): Promise<void> =>
      repeat(
        {
          clock,
          work: async (signal) => {
            await poll(signal)
            return size === 0 ? emptyPoolMilliseconds : pollMilliseconds
          },
          onError: (error) =>
            log.warn({ region: regionId, err: error }, 'The warm pool could not be checked. The check is retried.'),
        },
        signal,
      ),
  }
}

function countStates(tenants: readonly WarmTenant[]): Record<WarmTenant['state'], number> {
  const counts = { pending: 0, warm: 0, failed: 0, leaving: 0 }
  for (const { state } of tenants) counts[state]++
  return counts
}
