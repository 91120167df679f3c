// Makes a backup of a tenant as it was at a moment: Postgres is recovered from the archive in a scratch home, and the
// backup is taken there. The files come from where the tenant's runtimes store them, and retain those of deleted objects.
import { dedicatedDatabase } from '../../homes/index.ts'
import type { Snapshot } from '../../reconcile/index.ts'
import { componentServices, scratchId } from '../../stacks/index.ts'
import { committed, makeBackup } from '../backup-job.ts'
import type { Job } from '../backup.ts'
import { BackupError } from '../backup-error.ts'
import type { BackupInProgress, Taken } from '../complete-backup.ts'
import { blobsOf, type HomeLocation } from '../home-location.ts'
import { bucketOf, presentTenant, regionOf, scratchParts, stepOf, type JobDeps } from '../job-deps.ts'
import { takeBackup } from '../take-backup.ts'
import { recoverySource } from './archive.ts'
import { recoverServer } from './recover-server.ts'

const removeMs = 60_000

/**
 * Makes the backup of a restore to a point in time.
 * @returns the job with the complete backup
 * @throws BackupError, EngineError, OperationSuperseded
 */
export async function recoverBackup(job: Job, to: Date, deps: JobDeps, signal: AbortSignal): Promise<Job> {
  const taken = (await committed(job, deps, signal)) ?? (await take(job, to, deps, signal))
  return deps.ledger.completeRecovered(job, taken, deps.epoch)
}

async function take(job: Job, to: Date, deps: JobDeps, signal: AbortSignal): Promise<Taken> {
  const tenant = await presentTenant(deps, job.backup.tenantId)
  if (tenant.desired !== 'active' || tenant.status !== 'ready')
    throw new BackupError('NOT_RUNNING', `The tenant is ${tenant.status}. Only a ready tenant can be recovered.`)
  const stack = scratchId(job.operationId)
  const { engine } = regionOf(deps, tenant.regionId)
  try {
    const location = await recovered(job, to, tenant, stack, deps, signal)
    const make = (options: BackupInProgress) => takeBackup({ ...options, location, takenAt: to }, signal)
    return await makeBackup(job, tenant, deps, signal, make)
  } finally {
    // After a kill the next leader removes the rest.
    await engine.remove(stack, deps.clock.timeout(removeMs))
  }
}

async function recovered(
  job: Job,
  to: Date,
  tenant: Snapshot,
  stack: string,
  deps: JobDeps,
  signal: AbortSignal,
): Promise<HomeLocation> {
  const step = stepOf(deps, job)
  const { archives } = deps
  await step('archive')
  const source = recoverySource(await archives.ledger.of(tenant.id), to)
  if (source === undefined) throw new BackupError('FAILED', `The archive no longer covers ${to.toISOString()}.`)
  const { engine } = regionOf(deps, tenant.regionId)
  const key = await archives.ledger.key(source.archive.id)
  await step('services')
  const scratch = { engine, stack, parts: await scratchParts(deps, tenant.regionId, signal) }
  await recoverServer({ ...scratch, source, key, to, files: archives.files, step }, signal)
  return {
    engine,
    stack,
    postgres: 'postgres',
    filesStack: tenant.id,
    filesServices: componentServices(tenant.isolation).runtime,
    database: dedicatedDatabase,
    blobs: blobsOf(tenant.id),
    ...bucketOf(deps, tenant),
  }
}
