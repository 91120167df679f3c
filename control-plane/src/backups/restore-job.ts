// Runs one restore, into a new tenant or into the backup's own tenant.
import { hasCluster, isDedicated, type Snapshot } from '../reconcile/index.ts'
import { componentServices, onHost, serviceVolumes } from '../stacks/index.ts'
import { recoverBackup } from './archive/recover-backup.ts'
import type { Job } from './backup.ts'
import { BackupError } from './backup-error.ts'
import { bucketOf, presentTenant, regionOf, stepOf, type JobDeps } from './job-deps.ts'
import { openGoodCopy } from './good-copy.ts'
import { asSuperuser, inPostgres, type HomeLocation } from './home-location.ts'
import { loadHome, type Load } from './load-home.ts'
import { openPsql } from './psql-session.ts'
import { replaceHome } from './replace-home.ts'
import { makeScratchHome, makeScratchServer } from './scratch-home.ts'
import { asSharedBackup, loadSharedBackup } from './shared/convert-backup.ts'
import { restoreShared } from './shared/restore-shared.ts'
import { emptiedStack, scratchStack, type ScratchParts } from './scratch-stack.ts'

/**
 * Runs a restore.
 * @throws BackupError, EngineError, OperationSuperseded
 */
export async function runRestore(job: Job, deps: JobDeps, signal: AbortSignal): Promise<void> {
  if (job.backup.recoveredTo === undefined) return restore(job, deps, signal)
  const made = job.backup.state === 'running' ? await recoverBackup(job, job.backup.recoveredTo, deps, signal) : job
  await restore(made, deps, signal)
  // The restored home was compared before it replaced anything.
  await deps.ledger.recordRecovered(made, deps.epoch)
}

async function restore(job: Job, deps: JobDeps, signal: AbortSignal): Promise<void> {
  const tenant = await presentTenant(deps, job.tenantId)
  await stepOf(deps, job)('check')
  const { manifest, files } = await openGoodCopy(job, deps, signal)
  const onComplaint = (text: string) =>
    deps.log.warn({ backup: job.backup.id, text }, 'The program pg_restore reported errors.')
  const load = { manifest, files, migrations: deps.migrations, step: stepOf(deps, job), onComplaint }
  const isShared = manifest.database_format !== undefined
  if (tenant.desired !== 'restoring' && isDedicated(tenant) === isShared)
    throw new BackupError('FAILED', 'The backup is of the other isolation model. Restore it into a new tenant.')
  if (!isDedicated(tenant)) {
    const restoreFrom = (home: Load) => restoreShared(job, tenant, home, deps, signal)
    await (isShared ? restoreFrom(load) : asSharedBackup(job, load, deps, signal, restoreFrom))
  } else if (tenant.desired === 'restoring') await fillNew(job, tenant, load, deps, signal)
  else await replaceHome(job, tenant, load, deps, signal)
}

/**
 * Fills the volumes of a new tenant with scratch services. The tenant's own services take them over once everything is
 * restored and compared; in a cluster, the first member does, and the others copy from it. Until then the reconciler
 * ignores the tenant, and no client reaches it.
 */
async function fillNew(job: Job, tenant: Snapshot, load: Load, deps: JobDeps, signal: AbortSignal): Promise<void> {
  const { id, regionId, isolation } = tenant
  const { engine, images } = regionOf(deps, regionId)
  if (load.manifest.tenant_id === id) throw new BackupError('FAILED', 'The backup is of this tenant itself.')
  await load.step('services')
  const [first] = componentServices(isolation).postgres
  const volume = serviceVolumes(isolation)[first]
  const { [first]: host } = await deps.hosts.assign(tenant, deps.epoch, signal)
  const { bucket } = bucketOf(deps, tenant)
  const parts = {
    images: await images(signal),
    ...onHost({ host }),
    ...(volume === undefined ? {} : { dataVolume: volume }),
    hasFiles: bucket === undefined,
  }
  const location = await filledHome(tenant, parts, load, deps, signal)
  await load.step('handover')
  if (hasCluster(tenant)) await beginCluster(tenant, location, deps, signal)
  await engine.converge(emptiedStack(scratchStack(id, parts)), signal)
  await deps.ledger.activate(job, deps.epoch)
}

async function filledHome(
  tenant: Snapshot,
  parts: ScratchParts,
  load: Load,
  deps: JobDeps,
  signal: AbortSignal,
): Promise<HomeLocation> {
  const { id, regionId } = tenant
  const { engine } = regionOf(deps, regionId)
  const { tenant_id: tenantId, database_format: format } = load.manifest
  const bucket = bucketOf(deps, tenant)
  if (format !== undefined) {
    const location = { ...(await makeScratchServer(engine, id, parts, id, signal)), ...bucket }
    await loadSharedBackup(tenant, location, load, deps, signal)
    return location
  }
  const scratch = await makeScratchHome(engine, id, parts, { tenantId, homeId: id }, signal)
  const location = { ...scratch.location, ...bucket }
  await loadHome({ ...load, location, login: scratch.login, newId: id }, signal)
  return location
}

const server = 'postgres'

/** Prepares a filled Postgres to become the first member of a new cluster. */
async function beginCluster(
  { id, regionId }: Snapshot,
  location: HomeLocation,
  deps: JobDeps,
  signal: AbortSignal,
): Promise<void> {
  const { memberRoles, adoptData } = regionOf(deps, regionId)
  await asSuperuser(location, server, memberRoles(id), signal)
  const session = openPsql(inPostgres(location), server, undefined, [], signal)
  try {
    const [identifier = ''] = await session.rows('select system_identifier from pg_control_system()')
    await adoptData(id, identifier, signal)
  } finally {
    await session.close()
  }
}
