// Carries out one backup: of a tenant that runs, or of a paused one that is woken for it.
import type { Snapshot } from '../reconcile/reconcile-store.ts'
import { isDedicated } from '../reconcile/region.ts'
import type { Job } from './backup.ts'
import { BackupError } from './backup-error.ts'
import { filesOf, ownPlace, presentTenant, regionOf, stepOf, type JobDeps } from './job-deps.ts'
import { takeBackup } from './take-backup.ts'

const wakeMilliseconds = 120_000
const lookMilliseconds = 250

/** @throws BackupError, EngineError, NotWanted; nothing of it is left in the target then */
export async function runBackup(job: Job, deps: JobDeps, signal: AbortSignal): Promise<void> {
  const { ledger, target, epoch, log } = deps
  const { backup, tenantId } = job
  await target.remove(backup.id)
  try {
    const taken = await awake(job, deps, signal, async (tenant) => {
      const { engine } = regionOf(deps, tenant.regionId)
      const files = filesOf(deps, job, signal)
      return takeBackup({ backupId: backup.id, tenant, place: ownPlace(engine, tenantId), files, clock: deps.clock, step: stepOf(deps, job) }, signal)
    })
    for (const old of await ledger.completeBackup(job, taken, epoch)) {
      // What is left of it can't be read without its key, and goes at the next start.
      await target.remove(old).catch((cause: unknown) => log.warn({ backup: old, err: cause }, 'an old backup could not be removed'))
    }
  } catch (cause) {
    await target.remove(backup.id).catch((error: unknown) => log.warn({ backup: backup.id, err: error }, 'a broken backup could not be removed'))
    throw cause
  }
}

/** Calls `work` when the tenant runs; one that was paused is paused again afterwards, unless something was asked of it. */
async function awake<T>({ tenantId, backup }: Job, deps: JobDeps, signal: AbortSignal, work: (tenant: Snapshot) => Promise<T>): Promise<T> {
  const { ledger, epoch } = deps
  const tenant = await presentTenant(deps, tenantId)
  if (!isDedicated(tenant)) throw new BackupError('NOT_RUNNING', 'the tenant has no database of its own')
  const woken = tenant.desired === 'paused' && backup.trigger === 'schedule' ? await ledger.wake(tenantId, epoch) : undefined
  try {
    return await work(woken === undefined ? running(tenant) : await untilReady(tenantId, woken, deps, signal))
  } finally {
    if (woken !== undefined) await ledger.pauseAgain(tenantId, woken, epoch)
  }
}

function running(tenant: Snapshot): Snapshot {
  if (tenant.desired !== 'active' || tenant.status !== 'ready') throw new BackupError('NOT_RUNNING', `the tenant is ${tenant.status}; only one that is ready can be backed up`)
  return tenant
}

async function untilReady(tenantId: string, generation: number, deps: JobDeps, signal: AbortSignal): Promise<Snapshot> {
  for (let waited = 0; waited < wakeMilliseconds; waited += lookMilliseconds) {
    const tenant = await presentTenant(deps, tenantId)
    if (tenant.status === 'ready' && tenant.observedGeneration >= generation) return tenant
    await deps.clock.sleep(lookMilliseconds, signal)
  }
  throw new BackupError('NOT_RUNNING', 'the tenant was paused, and did not wake')
}
