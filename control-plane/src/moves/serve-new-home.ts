// Serves a tenant from its new home, after the switch. Every call may be repeated at any point.
import { knownStructure } from '../reconcile/index.ts'
import type { MoveDeps } from './move-deps.ts'
import { regionAfter, type MoveJob } from './move.ts'

const renewMilliseconds = 10_000
const pollMilliseconds = 20

/** Records the new database, and releases the requests when the runtimes use it. @returns whether the tenant exists */
export async function serveNewHome(job: MoveJob, deps: MoveDeps, signal: AbortSignal): Promise<boolean> {
  const { ledger, epoch, failpoint } = deps
  const generation = await ledger.recordSwitched(job, epoch)
  await failpoint('move.recorded')
  if (generation !== undefined) {
    await untilRenewed(job, generation, deps, signal)
    await ledger.release(job, 'done', epoch)
  }
  await failpoint('move.released')
  return generation !== undefined
}

/** Waits until the runtimes use the new database. A runtime that does not respond begins with it. */
async function untilRenewed(job: MoveJob, generation: number, deps: MoveDeps, signal: AbortSignal): Promise<void> {
  const { clock, probe, regions } = deps
  const tenant = await deps.tenant(job.tenantId)
  if (tenant === undefined) return
  // The move has compared the home. Requests wait for this call.
  const structure = knownStructure(tenant)
  const bounded = AbortSignal.any([signal, clock.timeout(renewMilliseconds)])
  const renewed = async (url: string) => {
    while (!bounded.aborted) {
      const health = await probe.tenantHealth(url, job.tenantId, bounded, structure).catch(() => undefined)
      if (health !== undefined && health.generation >= generation) return
      await clock.sleep(pollMilliseconds, bounded).catch(() => undefined)
    }
  }
  await Promise.all((regions.get(regionAfter(job))?.runtimeUrls(tenant) ?? []).map(renewed))
  signal.throwIfAborted()
}
