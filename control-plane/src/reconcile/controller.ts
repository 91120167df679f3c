// The loop of the control plane that leads: woken by changes, by a sweep for what was missed, and by what is due.
import type { Clock } from '../clock.ts'
import type { ChangeListener } from '../persistence/change-feed.ts'
import type { Leadership } from '../persistence/leader.ts'
import type { Failpoint } from './failpoints.ts'
import { LeadershipLost, type ReconcileStore } from './reconcile-store.ts'
import type { Region } from './region.ts'
import { createRegionLoop } from './region-loop.ts'
import type { RegionProbe } from './region-probe.ts'
import { LookFailed, recordFailure, reconcileTenant, type Outcome } from './tenant-reconciler.ts'
import { WorkQueue } from './work-queue.ts'

export interface ControllerDeps {
  store: ReconcileStore
  regions: ReadonlyMap<string, Region>
  homeVersion: string
  probe: RegionProbe
  changes: { subscribe(listener: ChangeListener): () => void }
  failpoint: Failpoint
  clock: Clock
  /** Uniform in [0, 1). */
  random: () => number
  log: { info(details: object, message: string): void; warn(details: object, message: string): void; error(details: object, message: string): void }
  measure: ControllerMeasures
  orphanGraceSeconds: number
  /** Work beside the tenants' own, e.g. the warm pool; each runs until its signal aborts. */
  housekeeping: readonly ((leadership: Leadership) => Promise<void>)[]
  sweepMilliseconds?: number
  concurrency?: number
}

export interface ControllerMeasures {
  /** Told of every run that ended. */
  reconciled(outcome: 'done' | 'repaired' | 'failed', seconds: number): void
  swept(region: string, sweep: { seconds: number; orphans: number; removed: number; corrected: boolean }): void
  /** Asked when the metrics are. */
  queue(read: () => { depth: number; delayed: number; oldestSeconds: number }): void
}

const firstDelay = 100
const longestDelay = 30_000

/** Runs while this control plane leads; returns when the lead is lost and all work has ended. */
export async function control(deps: ControllerDeps, { epoch, lost }: Leadership): Promise<void> {
  const failures = new Map<string, number>()
  const { clock } = deps
  const stopped = () => lost.aborted
  const seconds = (begin: number) => (clock.now().getTime() - begin) / 1000

  const work = async (tenantId: string): Promise<{ after: number | undefined }> => {
    if (stopped()) return { after: undefined }
    const begin = clock.now().getTime()
    try {
      const outcome = await reconcile(tenantId)
      failures.delete(tenantId)
      deps.measure.reconciled(outcome?.repaired === true ? 'repaired' : 'done', seconds(begin))
      return { after: outcome?.again === undefined ? undefined : Math.max(0, outcome.again.getTime() - clock.now().getTime()) }
    } catch (error) {
      if (error instanceof LeadershipLost || stopped()) return { after: undefined }
      const count = (failures.get(tenantId) ?? 0) + 1
      failures.set(tenantId, count)
      deps.measure.reconciled('failed', seconds(begin))
      deps.log.warn({ tenant: tenantId, failures: count, err: error }, 'a tenant could not be reconciled; it is tried again')
      // Half to one and a half times: tenants that failed together do not come back together.
      return { after: Math.min(firstDelay * 2 ** (count - 1), longestDelay) * (0.5 + deps.random()) }
    }
  }

  const reconcile = async (tenantId: string): Promise<Outcome | undefined> => {
    const snapshot = await deps.store.snapshot(tenantId)
    if (snapshot === undefined) return undefined
    const region = deps.regions.get(snapshot.regionId)
    if (region === undefined) throw new Error(`the region ${snapshot.regionId} is not configured`)
    const tenantDeps = { ...deps, region, epoch }
    try {
      return await reconcileTenant(snapshot, tenantDeps, lost)
    } catch (error) {
      if (!(error instanceof LeadershipLost) && !(error instanceof LookFailed) && !stopped()) {
        await recordFailure(snapshot, tenantDeps, error, (failures.get(tenantId) ?? 0) + 1).catch((cause: unknown) => {
          deps.log.warn({ tenant: tenantId, err: cause }, 'a failure could not be recorded')
        })
      }
      throw error
    }
  }

  const queue = new WorkQueue({ concurrency: deps.concurrency ?? 8, clock, work })
  deps.measure.queue(() => ({ depth: queue.depth, delayed: queue.delayed, oldestSeconds: queue.oldestSeconds }))
  const wake = (tenantId: string) => {
    // What failed comes back by its own, growing delay.
    if (!failures.has(tenantId)) queue.add(tenantId)
  }
  const regionStacks = [...deps.regions.values()].map(({ stackId }) => stackId)
  const loops = [...deps.regions.values()].flatMap((region) => {
    const { engine, config } = region
    if (engine === undefined) return []
    return [createRegionLoop({ ...deps, region, regionStacks, engine, epoch, wake, measure: (sweep) => deps.measure.swept(config.id, sweep) }, lost)]
  })
  const sweepTenants = async () => {
    try {
      for (const tenantId of await deps.store.unsettled(deps.homeVersion)) wake(tenantId)
    } catch (error) {
      deps.log.error({ err: error }, 'the sweep failed')
    }
  }
  const sweep = async () => {
    await Promise.all([sweepTenants(), ...loops.map((loop) => loop.sweep())])
  }
  const unsubscribe = deps.changes.subscribe((change) => {
    if (change === 'resync') void sweep()
    else if (change.kind === 'wanted') queue.add(change.tenantId)
  })
  const stopSweeping = clock.every(deps.sweepMilliseconds ?? 20_000, () => void sweep())
  const listening = loops.map((loop) => loop.listen())
  const keeping = deps.housekeeping.map((keep) => keep({ epoch, lost }))
  await sweepTenants()
  void Promise.all(loops.map((loop) => loop.sweep()))
  if (!stopped()) await new Promise((resolve) => lost.addEventListener('abort', resolve, { once: true }))
  stopSweeping()
  unsubscribe()
  await Promise.all([queue.stop(), ...listening, ...keeping])
}
