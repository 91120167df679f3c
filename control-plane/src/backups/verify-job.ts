// Runs one verification: reads the copies in all targets, restores the backup into a scratch home, compares it, and
// removes the scratch home. Differences are recorded once there are no more attempts (`jobs.ts`).
import type { Job } from './backup.ts'
import { openCheckedCopies } from './good-copy.ts'
import { regionOf, scratchParts, stepOf, type JobDeps } from './job-deps.ts'
import { loadHome } from './load-home.ts'
import { makeScratchHome } from './scratch-home.ts'
import { verifyShared } from './shared/verify-shared.ts'
import { scratchId } from '../stacks/index.ts'

const removeMilliseconds = 60_000

/**
 * Runs a verification.
 * @throws BackupError, EngineError, OperationSuperseded
 */
export async function runVerify(job: Job, deps: JobDeps, signal: AbortSignal): Promise<void> {
  const { ledger, epoch } = deps
  await compare(job, deps, signal)
  await ledger.recordVerified(job, null, epoch)
  await ledger.finish(job, epoch)
}

async function compare(job: Job, deps: JobDeps, signal: AbortSignal): Promise<void> {
  const { backup, operationId } = job
  const step = stepOf(deps, job)
  await step('check')
  const { manifest, files } = await openCheckedCopies(job, deps, signal)
  if (manifest.database_format !== undefined) {
    await verifyShared(job, { manifest, files, step }, deps, signal)
    return
  }
  const { engine } = regionOf(deps, backup.region)
  await step('services')
  const stack = scratchId(operationId)
  try {
    const ids = { tenantId: manifest.tenant_id, homeId: manifest.tenant_id }
    const parts = await scratchParts(deps, backup.region, signal)
    const { location, login } = await makeScratchHome(engine, stack, parts, ids, signal)
    const onComplaint = (text: string) =>
      deps.log.warn({ backup: backup.id, text }, 'The program pg_restore reported errors.')
    await loadHome(
      { manifest, files, location, login, newId: undefined, migrations: deps.migrations, step, onComplaint },
      signal,
    )
  } finally {
    // After a kill the next leader removes the rest.
    await engine.remove(stack, deps.clock.timeout(removeMilliseconds))
  }
}
