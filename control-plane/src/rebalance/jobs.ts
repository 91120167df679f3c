// The jobs of shared databases and of hosts, while this control plane leads: one measures them, the other carries out rebalances.
import type { ClusterState } from '../clusters/index.ts'
import type { Clock } from '../platform/clock.ts'
import type { Database } from '../platform/database.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import { repeat } from '../platform/repeat.ts'
import { repeatInRegions } from '../platform/repeat-in-regions.ts'
import type { PlacementStore } from '../placement/index.ts'
import type { Failpoint, Region } from '../reconcile/index.ts'
import { superuserOf, type RegionConfig } from '../regions/index.ts'
import type { TenantStore } from '../tenants/index.ts'
import { measureDatabase } from './measure-homes.ts'
import type { DatabaseLoad, Rebalance, RebalanceMove } from './rebalance.ts'
import { createRebalanceLedger, type RebalanceLedger } from './store-ledger.ts'

const pollMilliseconds = 1_000
/** The moves of a rebalance that are in progress at a time. Those that operators request are not among them. */
const maxMoves = 2
/** A database that has just been opened is measured at the next poll. */
const measurePollMilliseconds = 5_000
const measureMilliseconds = 300_000
const queryMilliseconds = 60_000
const hostMilliseconds = 20_000

/** The part of a region that the jobs use. */
type RebalancedRegion = Pick<Region, 'config' | 'capacities' | 'cluster'>

interface RebalanceDeps {
  ledger: RebalanceLedger
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
  regions: ReadonlyMap<string, RebalancedRegion>
  services: { placements: Pick<PlacementStore, 'inTurn' | 'reserved'> }
  failpoint: Failpoint
}

interface MeasureDeps extends Pick<RebalanceDeps, 'ledger' | 'clock' | 'log' | 'regions'> {
  /** Receives each database at each measurement. */
  measure: (region: string, database: DatabaseLoad) => void
}

/** The dependencies of the jobs of shared databases. */
export interface RebalanceJobDeps extends Omit<MeasureDeps & RebalanceDeps, 'ledger'> {
  database: Database
  tenants: Pick<TenantStore, 'move' | 'moveService' | 'switchOver'>
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
function runRebalances(deps: RebalanceDeps): (leadership: Leadership) => Promise<void> {
  const { ledger, clock, log, failpoint } = deps
  const { placements } = deps.services
  return async ({ epoch, lost }) => {
    const work = async () => {
      for (const rebalance of await ledger.open()) await advance(rebalance, epoch, lost)
      return pollMilliseconds
    }
    const onError = (error: unknown) =>
      log.warn({ err: error }, 'The rebalances could not be continued. The work is retried.')
    await repeat({ clock, work, onError }, lost)
  }

  async function advance(rebalance: Rebalance, epoch: bigint, lost: AbortSignal): Promise<void> {
    await ledger.settle(rebalance, epoch)
    await failpoint('rebalance.settled')
    let moving = rebalance.moves.filter(({ state }) => state === 'moving').length
    const waiting = rebalance.state === 'running' ? rebalance.moves.filter(({ state }) => state === 'waiting') : []
    for (const move of waiting) {
      if (moving >= maxMoves) break
      if (await begin(rebalance, move, epoch, lost)) moving++
    }
    if (moving > 0 || waiting.length > 0) return
    await ledger.finish(rebalance, epoch)
    log.info({ rebalance: rebalance.id, region: rebalance.region }, 'A rebalance has ended.')
  }

  /** Begins a move. @returns whether it is in progress */
  async function begin(rebalance: Rebalance, move: RebalanceMove, epoch: bigint, lost: AbortSignal): Promise<boolean> {
    if (move.kind === 'home') return ledger.beginHome(rebalance, move, epoch)
    const region = deps.regions.get(rebalance.region)
    if (region === undefined) return false
    const signal = AbortSignal.any([lost, clock.timeout(hostMilliseconds)])
    const hasBegun =
      move.kind === 'service'
        ? await beginService(rebalance, move, region, epoch, signal)
        : await beginSwitchover(rebalance, move, region, epoch, signal)
    if (hasBegun) await failpoint('rebalance.begun')
    return hasBegun
  }

  /** Begins the move of a service. What the reconciler gives to tenants is reserved before, or after the service has its memory. */
  function beginService(
    rebalance: Rebalance,
    move: RebalanceMove,
    region: RebalancedRegion,
    epoch: bigint,
    signal: AbortSignal,
  ): Promise<boolean> {
    return placements.inTurn(rebalance.region, async () => {
      const hosts = await region.capacities(await placements.reserved(rebalance.region), signal)
      await failpoint('rebalance.chosen')
      return ledger.beginService(rebalance, move, hosts, epoch)
    })
  }

  async function beginSwitchover(
    rebalance: Rebalance,
    move: RebalanceMove,
    region: RebalancedRegion,
    epoch: bigint,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { tenantId, service, targetService = '' } = move
    // A member cannot take over while it moves.
    const isOpen = ({ state }: RebalanceMove) => state === 'waiting' || state === 'moving'
    if (rebalance.moves.some((other) => other.kind === 'service' && other.tenantId === tenantId && isOpen(other)))
      return false
    const state = await region.cluster({ id: tenantId, isolation: 'cluster-per-tenant' }, signal).catch(() => undefined)
    const error = whyNot(state, service, targetService)
    await failpoint('rebalance.chosen')
    if (error === undefined) return ledger.beginSwitchover(rebalance, move, epoch)
    await ledger.skip(rebalance, move, error, epoch)
    return false
  }
}

/** Returns why a planned switchover is not possible any more; undefined if it is. */
function whyNot(state: ClusterState | undefined, from: string | undefined, to: string): string | undefined {
  if (state === undefined) return 'The cluster does not respond.'
  if (state.primary !== from) return `The member ${from ?? ''} is not the primary any more.`
  return state.candidates.includes(to) ? undefined : `The member ${to} cannot become the primary.`
}

/** Creates the job that measures the shared databases every five minutes, region by region at the same time. */
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
    const createWork =
      (region: string, { config }: RebalancedRegion) =>
      async () => {
        await measureRegion(region, config)
        return measurePollMilliseconds
      }
    const failure = 'The shared databases could not be measured. The measurement is retried.'
    await repeatInRegions(regions, { clock, log, createWork, failure }, lost)
  }
}
