// Carries out one restore: into a tenant that is made for it, or into the tenant that the backup is of.
import type { Snapshot } from '../reconcile/index.ts'
import type { Job } from './backup.ts'
import { BackupError } from './backup-error.ts'
import { filesOf, presentTenant, regionOf, stepOf, type JobDeps } from './job-deps.ts'
import { loadHome, type Load } from './load-home.ts'
import { replaceHome } from './replace-home.ts'
import { makeScratchHome } from './scratch-home.ts'
import { emptiedStack, scratchStack } from './scratch-stack.ts'

/** @throws BackupError, EngineError, NotWanted */
export async function runRestore(job: Job, deps: JobDeps, signal: AbortSignal): Promise<void> {
  const tenant = await presentTenant(deps, job.tenantId)
  const files = filesOf(deps, job, signal)
  await stepOf(deps, job)('check')
  const manifest = await files.readManifest(job.backup.manifestHash ?? '')
  await files.check(manifest)
  const onComplaint = (text: string) => deps.log.warn({ backup: job.backup.id, text }, 'pg_restore complained')
  const load = { manifest, files, migrations: deps.migrations, step: stepOf(deps, job), onComplaint }
  if (tenant.desired === 'restoring') await fillNew(job, tenant, load, deps, signal)
  else await replaceHome(job, tenant, load, deps, signal)
}

/**
 * The volumes of the new tenant are filled by services of ours; its own take them over when all of it is there and was
 * compared. Until then the reconciler leaves the tenant alone, and nobody is sent to it.
 */
async function fillNew(
  job: Job,
  { id, regionId }: Snapshot,
  load: Load,
  deps: JobDeps,
  signal: AbortSignal,
): Promise<void> {
  const { engine, images } = regionOf(deps, regionId)
  if (load.manifest.tenant_id === id) throw new BackupError('FAILED', 'the backup is of this very tenant')
  await load.step('services')
  const digests = await images(signal)
  const { place: location, login } = await makeScratchHome(
    engine,
    id,
    digests,
    { tenantId: load.manifest.tenant_id, homeId: id },
    signal,
  )
  await loadHome({ ...load, place: location, login, newId: id }, signal)
  await load.step('handover')
  await engine.converge(emptiedStack(scratchStack(id, digests)), signal)
  await deps.ledger.activate(job, deps.epoch)
}
