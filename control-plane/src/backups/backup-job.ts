// Makes one backup, of a running tenant or of a paused one that it wakes.
import { type Snapshot, isDedicated } from '../reconcile/index.ts'
import type { Job } from './backup.ts'
import { BackupError } from './backup-error.ts'
import { filesOf, ownLocation, presentTenant, regionOf, stepOf, type JobDeps } from './job-deps.ts'
import { encryptedParts } from './manifest.ts'
import { takeBackup, type Taken } from './take-backup.ts'

const wakeMilliseconds = 120_000
const pollMilliseconds = 250

/**
 * Makes a backup. One that an interrupted attempt has committed is recorded as it is, and not made again. After an
 * error nothing uncommitted remains in the target.
 * @throws BackupError, EngineError, OperationSuperseded
 */
export async function runBackup(job: Job, deps: JobDeps, signal: AbortSignal): Promise<void> {
  const { ledger, target, epoch, log } = deps
  const taken = (await committed(job, deps, signal)) ?? (await takeOwn(job, deps, signal))
  for (const old of await ledger.completeBackup(job, taken, epoch)) {
    await target
      .remove(old)
      .catch((cause: unknown) => log.warn({ backup: old, err: cause }, 'An old backup could not be removed.'))
  }
}

async function committed(job: Job, deps: JobDeps, signal: AbortSignal): Promise<Taken | undefined> {
  const bytes = await deps.target.size(job.backup.id, encryptedParts)
  return bytes === undefined ? undefined : { bytes, manifestHash: await filesOf(deps, job, signal).manifestHash() }
}

async function takeOwn(job: Job, deps: JobDeps, signal: AbortSignal): Promise<Taken> {
  const { target, ledger, log } = deps
  const { backup, tenantId } = job
  await target.discard(backup.id)
  try {
    const { plan } = await ledger.planOf(tenantId)
    return await awake(job, deps, signal, async (tenant) => {
      const { engine } = regionOf(deps, tenant.regionId)
      const files = filesOf(deps, job, signal)
      const record = (taken: Taken) => recordOf(job, { ...tenant, plan }, taken, deps)
      const location = ownLocation(engine, tenantId)
      return takeBackup(
        { backupId: backup.id, tenant, location, files, clock: deps.clock, record, step: stepOf(deps, job) },
        signal,
      )
    })
  } catch (cause) {
    await target.discard(backup.id).catch((error: unknown) => {
      log.warn({ backup: backup.id, err: error }, 'An incomplete backup could not be removed.')
    })
    throw cause
  }
}

function recordOf(
  { backup, key }: Job,
  tenant: Snapshot & { plan: string },
  taken: Taken,
  { records, clock }: JobDeps,
): string {
  const described = {
    backup_id: backup.id,
    tenant_id: tenant.id,
    tenant_name: tenant.name,
    plan: tenant.plan,
    isolation: tenant.isolation,
    region: backup.region,
    trigger: backup.trigger,
    planned_at: backup.plannedAt?.toISOString() ?? null,
    created_at: backup.createdAt.toISOString(),
    finished_at: clock.now().toISOString(),
    bytes: taken.bytes,
    manifest_sha256: taken.manifestHash,
  }
  return records.write(described, key)
}

/**
 * Calls `work` with the running tenant. For a scheduled backup, a paused tenant is woken and afterwards paused again,
 * unless a request has changed it meanwhile.
 * @throws BackupError NOT_RUNNING for any other tenant that is not ready
 */
async function awake<T>(
  { tenantId, backup }: Job,
  deps: JobDeps,
  signal: AbortSignal,
  work: (tenant: Snapshot) => Promise<T>,
): Promise<T> {
  const { ledger, epoch } = deps
  const tenant = await presentTenant(deps, tenantId)
  if (!isDedicated(tenant)) throw new BackupError('NOT_RUNNING', 'The tenant has no database of its own.')
  const woken =
    tenant.desired === 'paused' && backup.trigger === 'schedule' ? await ledger.wake(tenantId, epoch) : undefined
  try {
    return await work(woken === undefined ? running(tenant) : await untilReady(tenantId, woken, deps, signal))
  } finally {
    if (woken !== undefined) await ledger.pauseAgain(tenantId, woken, epoch)
  }
}

function running(tenant: Snapshot): Snapshot {
  if (tenant.desired !== 'active' || tenant.status !== 'ready')
    throw new BackupError('NOT_RUNNING', `The tenant is ${tenant.status}. Only a ready tenant can be backed up.`)
  return tenant
}

async function untilReady(tenantId: string, generation: number, deps: JobDeps, signal: AbortSignal): Promise<Snapshot> {
  for (let waited = 0; waited < wakeMilliseconds; waited += pollMilliseconds) {
    const tenant = await presentTenant(deps, tenantId)
    if (tenant.status === 'ready' && tenant.observedGeneration >= generation) return tenant
    await deps.clock.sleep(pollMilliseconds, signal)
  }
  throw new BackupError('NOT_RUNNING', 'The paused tenant did not wake in time.')
}
