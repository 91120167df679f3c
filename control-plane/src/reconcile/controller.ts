// The loop of the control plane that leads: woken by changes, by a sweep for what was missed, and by what is due.
import type { RegionConfig } from '../config.ts'
import type { HomeDatabases } from '../homes/home-databases.ts'
import type { ChangeListener } from '../persistence/change-feed.ts'
import type { Leadership } from '../persistence/leader.ts'
import type { Failpoint } from './failpoints.ts'
import { LeadershipLost, type ReconcileStore } from './reconcile-store.ts'
import type { RegionProbe } from './region-probe.ts'
import { recordFailure, reconcileTenant } from './tenant-reconciler.ts'
import { WorkQueue } from './work-queue.ts'

export interface ControllerDeps {
  store: ReconcileStore
  regions: ReadonlyMap<string, { config: RegionConfig; homes: HomeDatabases }>
  homeVersion: string
  probe: RegionProbe
  changes: { subscribe(listener: ChangeListener): () => void }
  failpoint: Failpoint
  now: () => Date
  /** Uniform in [0, 1). */
  random: () => number
  log: { warn(details: object, message: string): void; error(details: object, message: string): void }
  /** Told of every run that ended. */
  measure?: (outcome: 'done' | 'failed', seconds: number) => void
  sweepMilliseconds?: number
  concurrency?: number
}

const firstDelay = 100
const longestDelay = 30_000

/** Runs while this control plane leads; returns when the lead is lost and all work has ended. */
export async function control(deps: ControllerDeps, { epoch, lost }: Leadership): Promise<void> {
  const failures = new Map<string, number>()
  const stopped = () => lost.aborted

  const work = async (tenantId: string): Promise<{ after: number | undefined }> => {
    if (stopped()) return { after: undefined }
    const begin = performance.now()
    try {
      const again = await reconcile(tenantId)
      failures.delete(tenantId)
      deps.measure?.('done', (performance.now() - begin) / 1000)
      return { after: again === undefined ? undefined : Math.max(0, again.getTime() - deps.now().getTime()) }
    } catch (error) {
      if (error instanceof LeadershipLost || stopped()) return { after: undefined }
      const count = (failures.get(tenantId) ?? 0) + 1
      failures.set(tenantId, count)
      deps.measure?.('failed', (performance.now() - begin) / 1000)
      deps.log.warn({ tenant: tenantId, failures: count, err: error }, 'a tenant could not be reconciled; it is tried again')
      // Half to one and a half times: tenants that failed together do not come back together.
      return { after: Math.min(firstDelay * 2 ** (count - 1), longestDelay) * (0.5 + deps.random()) }
    }
  }

  const reconcile = async (tenantId: string): Promise<Date | undefined> => {
    const snapshot = await deps.store.snapshot(tenantId)
    if (snapshot === undefined) return undefined
    const region = deps.regions.get(snapshot.regionId)
    if (region === undefined) throw new Error(`the region ${snapshot.regionId} is not configured`)
    const tenantDeps = { ...deps, region: region.config, homes: region.homes, epoch }
    try {
      return (await reconcileTenant(snapshot, tenantDeps, lost)).again
    } catch (error) {
      if (!(error instanceof LeadershipLost) && !stopped()) {
        await recordFailure(snapshot, tenantDeps, error, (failures.get(tenantId) ?? 0) + 1).catch((cause: unknown) => {
          deps.log.warn({ tenant: tenantId, err: cause }, 'a failure could not be recorded')
        })
      }
      throw error
    }
  }

  const queue = new WorkQueue({ concurrency: deps.concurrency ?? 8, work })
  const sweep = async () => {
    try {
      for (const tenantId of await deps.store.unsettled(deps.homeVersion)) {
        // What failed comes back by its own, growing delay.
        if (!failures.has(tenantId)) queue.add(tenantId)
      }
    } catch (error) {
      deps.log.error({ err: error }, 'the sweep failed')
    }
  }
  const unsubscribe = deps.changes.subscribe((change) => {
    if (change === 'resync') void sweep()
    else if (change.kind === 'wanted') queue.add(change.tenantId)
  })
  const timer = setInterval(() => void sweep(), deps.sweepMilliseconds ?? 20_000)
  await sweep()
  if (!stopped()) await new Promise((resolve) => lost.addEventListener('abort', resolve, { once: true }))
  clearInterval(timer)
  unsubscribe()
  await queue.stop()
}
