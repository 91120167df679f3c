// Runs one restore, into a new tenant or into the backup's own tenant.
import type { Snapshot } from '../reconcile/index.ts'
import type { Job } from './backup.ts'
import { BackupError } from './backup-error.ts'
import { filesOf, presentTenant, regionOf, stepOf, type JobDeps } from './job-deps.ts'
import { loadHome, type Load } from './load-home.ts'
import { replaceHome } from './replace-home.ts'
import { makeScratchHome } from './scratch-home.ts'
import { emptiedStack, scratchStack } from './scratch-stack.ts'

/**
 * Runs a restore.
 * @throws BackupError, EngineError, OperationSuperseded
 */
export async function runRestore(job: Job, deps: JobDeps, signal: AbortSignal): Promise<void> {
  const tenant = await presentTenant(deps, job.tenantId)
  const files = filesOf(deps, job, signal)
  await stepOf(deps, job)('check')
  const manifest = await files.readManifest(job.backup.manifestHash ?? '')
  await files.check(manifest)
  const onComplaint = (text: string) =>
    deps.log.warn({ backup: job.backup.id, text }, 'The program pg_restore reported errors.')
  const load = { manifest, files, migrations: deps.migrations, step: stepOf(deps, job), onComplaint }
  if (tenant.desired === 'restoring') await fillNew(job, tenant, load, deps, signal)
  else await replaceHome(job, tenant, load, deps, signal)
}

/**
 * Fills the volumes of a new tenant with scratch services. The tenant's own services take them over once everything is
 * restored and compared. Until then the reconciler ignores the tenant, and no client reaches it.
 */
async function fillNew(
  job: Job,
  { id, regionId }: Snapshot,
  load: Load,
  deps: JobDeps,
  signal: AbortSignal,
): Promise<void> {
  const { engine, images } = regionOf(deps, regionId)
  if (load.manifest.tenant_id === id) throw new BackupError('FAILED', 'The backup is of this tenant itself.')
  await load.step('services')
  const digests = await images(signal)
  const { location, login } = await makeScratchHome(
    engine,
    id,
    digests,
    { tenantId: load.manifest.tenant_id, homeId: id },
    signal,
  )
  await loadHome({ ...load, location, login, newId: id }, signal)
  await load.step('handover')
  await engine.converge(emptiedStack(scratchStack(id, digests)), signal)
  await deps.ledger.activate(job, deps.epoch)
}
