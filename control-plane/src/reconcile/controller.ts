// The reconciliation loop of the leading control plane. Changes, sweeps for missed changes, and due times wake it.
import type { Clock } from '../platform/clock.ts'
import { EngineError } from '../engines/index.ts'
import type { ChangeListener } from '../platform/change-feed.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import type { Failpoint } from './failpoints.ts'
import { failedAgain, keepsFailing, retryAfter, type FailureSeries } from './failure-series.ts'
import type { ReconcileStore, Snapshot } from './reconcile-store.ts'
import { LeadershipLost } from '../platform/leadership-lost.ts'
import type { Region } from './region.ts'
import { createRegionLoop } from './region-loop.ts'
import type { RegionConditions } from './region-conditions.ts'
import type { RegionProbe } from './region-probe.ts'
import { Observations } from './observations.ts'
import type { Outcome } from './reconciliation.ts'
import { recordFailure } from './record-outcome.ts'
import { ObservationFailed, reconcileTenant } from './tenant-reconciler.ts'
import { WorkQueue } from './work-queue.ts'

interface ControllerDeps {
  store: ReconcileStore
  regions: ReadonlyMap<string, Region>
  homeVersion: string
  conditions: RegionConditions
  probe: RegionProbe
  changes: { subscribe(listener: ChangeListener): () => void }
  failpoint: Failpoint
  clock: Clock
  /** Returns a uniform random number in [0, 1). */
  random: () => number
  log: Log
  measure: ControllerMeasures
  orphanGraceSeconds: number
  /** Work in addition to the tenants' own, for example the warm pool. Each task runs until its signal aborts. */
  housekeeping: readonly ((leadership: Leadership) => Promise<void>)[]
  sweepMilliseconds?: number
  /** The maximum number of simultaneous reconciliations in each region. */
  concurrency?: number
}

/** Metrics of the controller. */
export interface ControllerMeasures {
  /** Records the end of a run. */
  reconciled(outcome: 'done' | 'repaired' | 'failed', seconds: number): void
  /**
   * Records a region's sweep for orphans: how many it found and how many it removed. `corrected` is set if the region's
   * own stack had drifted.
   */
  swept(region: string, sweep: { seconds: number; orphans: number; removed: number; corrected: boolean }): void
  /** Registers the function that the metrics call to read the queue. */
  queue(read: () => { depth: number; delayed: number; oldestSeconds: number }): void
}

/** A reconciliation in progress. */
interface Run {
  /** Snapshot with which the run began. */
  snapshot: Snapshot | undefined
  /** Observations up to the end of the run, or to its failure. */
  observations: Observations
  /** Aborted when a newer generation exists, or the engine is reachable again. */
  superseded: AbortController
}

function isOutage(error: unknown): boolean {
  const cause = error instanceof ObservationFailed ? error.cause : error
  return cause instanceof EngineError && cause.code === 'ENGINE_UNREACHABLE'
}

/** Runs while this control plane leads. It returns when leadership is lost and all work has ended. */
export async function control(deps: ControllerDeps, { epoch, lost }: Leadership): Promise<void> {
  const failures = new Map<string, FailureSeries>()
  const inProgress = new Map<string, Run>()
  const rejectedSubnets = new Map<string, number>()
  const { clock } = deps
  const stopped = () => lost.aborted
  const seconds = (begin: number) => (clock.now().getTime() - begin) / 1000

  const work = async (tenantId: string): Promise<{ after: number | undefined }> => {
    if (stopped()) return { after: undefined }
    const begin = clock.now().getTime()
    const run: Run = {
      snapshot: undefined,
      observations: new Observations(clock),
      superseded: new AbortController(),
    }
    inProgress.set(tenantId, run)
    try {
      const outcome = await reconcile(tenantId, run)
      failures.delete(tenantId)
      deps.measure.reconciled(outcome?.repaired === true ? 'repaired' : 'done', seconds(begin))
      return {
        after: outcome?.again === undefined ? undefined : Math.max(0, outcome.again.getTime() - clock.now().getTime()),
      }
    } catch (error) {
      if (error instanceof LeadershipLost || stopped()) return { after: undefined }
      if (run.superseded.signal.aborted) return { after: 0 }
      const series = failedAgain(
        failures.get(tenantId),
        clock.now(),
        isOutage(error) ? run.snapshot?.regionId : undefined,
      )
      failures.set(tenantId, series)
      await record(run, error, series)
      deps.measure.reconciled('failed', seconds(begin))
      deps.log.warn(
        { tenant: tenantId, failures: series.count, err: error },
        'The reconciliation of a tenant failed and is retried.',
      )
      return { after: retryAfter(series, clock.now(), deps.random()) }
    } finally {
      inProgress.delete(tenantId)
    }
  }

  const regionOf = ({ regionId }: Snapshot): Region => {
    const region = deps.regions.get(regionId)
    if (region === undefined) throw new Error(`The region "${regionId}" is not configured.`)
    return region
  }

  const reconcile = async (tenantId: string, run: Run): Promise<Outcome | undefined> => {
    const snapshot = await deps.store.snapshot(tenantId)
    if (snapshot === undefined) {
      rejectedSubnets.delete(tenantId)
      return undefined
    }
    run.snapshot = snapshot
    return reconcileTenant(
      snapshot,
      { ...deps, region: regionOf(snapshot), epoch, rejectedSubnets, observations: run.observations },
      AbortSignal.any([lost, run.superseded.signal]),
    )
  }

  /** Records a failed run. A failed poll reveals nothing of the tenant and is not recorded. */
  const record = async ({ snapshot, observations }: Run, error: unknown, series: FailureSeries): Promise<void> => {
    if (snapshot === undefined || error instanceof ObservationFailed) return
    const how = { store: deps.store, clock, epoch, observations }
    await recordFailure(snapshot, how, error, series).catch((cause: unknown) => {
      deps.log.warn({ tenant: snapshot.id, err: cause }, 'The failure of a reconciliation could not be recorded.')
    })
  }

  /** Aborts a run of an older generation. A late or repeated call has no effect. */
  const supersede = async (tenantId: string): Promise<void> => {
    const run = inProgress.get(tenantId)
    if (run === undefined) return
    const newest = await deps.store.snapshot(tenantId)
    if (newest !== undefined && run.snapshot !== undefined && newest.generation > run.snapshot.generation)
      run.superseded.abort(new Error('A newer generation exists.'))
  }

  const queue = new WorkQueue({
    concurrency: deps.concurrency ?? 8,
    clock,
    // What hangs in one region must not delay the others.
    laneOf: async (tenantId) => (await deps.store.regionOf(tenantId)) ?? '',
    isSlow: (tenantId) => keepsFailing(failures.get(tenantId)),
    work,
  })
  deps.measure.queue(() => ({ depth: queue.depth, delayed: queue.delayed, oldestSeconds: queue.oldestSeconds }))
  const wake = (tenantId: string, regionId: string) => {
    // A failed key returns by its own, growing delay.
    if (!failures.has(tenantId)) queue.add(tenantId, regionId)
  }
  /**
   * Requeues the tenants that failed because an engine was unreachable, without the rest of their delay. Runs in progress
   * begin again: they may wait for services that the outage has ended.
   */
  const recovered = (regionId: string) => {
    for (const [tenantId, { outageOf }] of failures) if (outageOf === regionId) queue.add(tenantId, regionId)
    for (const { snapshot, superseded } of inProgress.values())
      if (snapshot?.regionId === regionId) superseded.abort(new Error('The engine is reachable again.'))
  }
  const regionStacks = [...deps.regions.values()].map(({ stackId }) => stackId)
  const loops = [...deps.regions.values()].flatMap((region) => {
    const { engine, config } = region
    if (engine === undefined) return []
    return [
      createRegionLoop(
        {
          ...deps,
          region,
          regionStacks,
          engine,
          epoch,
          wake: (tenantId) => wake(tenantId, config.id),
          recovered: () => recovered(config.id),
          measure: (sweep) => deps.measure.swept(config.id, sweep),
        },
        lost,
      ),
    ]
  })
  const sweepTenants = async () => {
    try {
      for (const { id, regionId } of await deps.store.unsettled(deps.homeVersion)) wake(id, regionId)
    } catch (error) {
      deps.log.error({ err: error }, 'The sweep of tenants failed.')
    }
  }
  const sweep = async () => {
    await Promise.all([sweepTenants(), ...loops.map((loop) => loop.sweep())])
  }
  const unsubscribe = deps.changes.subscribe((change) => {
    // Without a response the run continues to its end.
    const supersedeAll = (ids: Iterable<string>) => {
      for (const id of ids) supersede(id).catch(() => undefined)
    }
    if (change === 'resync') {
      void sweep()
      supersedeAll(inProgress.keys())
    } else if (change.kind === 'wanted') {
      queue.add(change.subject)
      supersedeAll([change.subject])
    }
  })
  const stopSweeping = clock.every(deps.sweepMilliseconds ?? 20_000, () => void sweep())
  const listening = loops.map((loop) => loop.listen())
  const housekeeping = deps.housekeeping.map((task) => task({ epoch, lost }))
  await sweepTenants()
  void Promise.all(loops.map((loop) => loop.sweep()))
  if (!stopped()) await new Promise((resolve) => lost.addEventListener('abort', resolve, { once: true }))
  stopSweeping()
  unsubscribe()
  await Promise.all([queue.stop(), ...listening, ...housekeeping])
  deps.conditions.evict()
}
