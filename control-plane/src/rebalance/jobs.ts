// The jobs of shared databases, while this control plane leads: one measures them, the other carries out rebalances.
import type { Clock } from '../platform/clock.ts'
import type { Database } from '../platform/database.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import { repeat } from '../platform/repeat.ts'
import { superuserOf, type RegionConfig } from '../regions/index.ts'
import type { TenantStore } from '../tenants/index.ts'
import { measureDatabase } from './measure-homes.ts'
import type { DatabaseLoad, Rebalance } from './rebalance.ts'
import { createRebalanceLedger, type RebalanceLedger } from './store-ledger.ts'

const pollMilliseconds = 1_000
/** The moves of a rebalance that are in progress at a time. Those that operators request are not among them. */
const maxMoves = 2
/** A database that has just been opened is measured at the next poll. */
const measurePollMilliseconds = 5_000
const measureMilliseconds = 300_000
const queryMilliseconds = 60_000

interface RebalanceDeps {
  ledger: RebalanceLedger
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
}

interface MeasureDeps extends RebalanceDeps {
  regions: ReadonlyMap<string, { config: RegionConfig }>
  /** Receives each database at each measurement. */
  measure: (region: string, database: DatabaseLoad) => void
}

/** The dependencies of the jobs of shared databases. */
export interface RebalanceJobDeps extends Omit<MeasureDeps, 'ledger'> {
  database: Database
  tenants: Pick<TenantStore, 'move'>
  /** Returns the time of the writes. */
  now: () => Date
}

/** Creates the leader's jobs. */
export function rebalanceJobs({
  database,
  tenants,
  now,
  ...deps
}: RebalanceJobDeps): ((leadership: Leadership) => Promise<void>)[] {
  const ledger = createRebalanceLedger(database, tenants, now)
  return [runRebalances({ ...deps, ledger }), measureDatabases({ ...deps, ledger })]
}

/** Creates the job that carries out rebalances. */
function runRebalances({ ledger, clock, log }: RebalanceDeps): (leadership: Leadership) => Promise<void> {
  return async ({ epoch, lost }) => {
    const work = async () => {
      for (const rebalance of await ledger.open()) await advance(rebalance, epoch)
      return pollMilliseconds
    }
    const onError = (error: unknown) =>
      log.warn({ err: error }, 'The rebalances could not be continued. The work is retried.')
    await repeat({ clock, work, onError }, lost)
  }

  async function advance(rebalance: Rebalance, epoch: bigint): Promise<void> {
    await ledger.settle(rebalance, epoch)
    let moving = rebalance.moves.filter(({ state }) => state === 'moving').length
    const waiting = rebalance.state === 'running' ? rebalance.moves.filter(({ state }) => state === 'waiting') : []
    for (const move of waiting) {
      if (moving >= maxMoves) break
      if (await ledger.begin(rebalance, move, epoch)) moving++
    }
    if (moving > 0 || waiting.length > 0) return
    await ledger.finish(rebalance, epoch)
    log.info({ rebalance: rebalance.id, region: rebalance.region }, 'A rebalance has ended.')
  }
}

/** Creates the job that measures the shared databases every five minutes. */
function measureDatabases(deps: MeasureDeps): (leadership: Leadership) => Promise<void> {
  const { ledger, regions, clock, log, measure } = deps
  return async ({ epoch, lost }) => {
    const measureRegion = async (region: string, config: RegionConfig) => {
      const postgresUrl = superuserOf(config)
      const measuredBefore = clock.now().getTime() - measureMilliseconds
      for (const database of await ledger.databases(region)) {
        if (database.measuredAt !== undefined && database.measuredAt.getTime() > measuredBefore) continue
        const signal = AbortSignal.any([lost, clock.timeout(queryMilliseconds)])
        const bytes = await measureDatabase({ postgresUrl, database: database.name }, signal)
        if (bytes === undefined) continue
        await ledger.measured(region, database.name, bytes, epoch)
        measure(region, { ...database, bytes })
      }
    }
    const work = async () => {
      for (const [region, { config }] of regions)
        await measureRegion(region, config).catch((error: unknown) => {
          lost.throwIfAborted()
          log.warn({ region, err: error }, 'The shared databases could not be measured. The measurement is retried.')
        })
      return measurePollMilliseconds
    }
    const onError = (error: unknown) => log.warn({ err: error }, 'The shared databases could not be measured.')
    await repeat({ clock, work, onError }, lost)
  }
}
