// Carries out one verification: the backup is restored into a scratch home and compared, and the scratch home removed.
// What it found wrong is recorded once it is not tried again (`jobs.ts`).
import type { Job } from './backup.ts'
import { filesOf, regionOf, stepOf, type JobDeps } from './job-deps.ts'
import { loadHome } from './load-home.ts'
import { makeScratchHome } from './scratch-home.ts'
import { scratchId } from '../stacks/index.ts'

const removeMilliseconds = 60_000

/** @throws BackupError, EngineError, NotWanted */
export async function runVerify(job: Job, deps: JobDeps, signal: AbortSignal): Promise<void> {
  const { ledger, epoch } = deps
  await compare(job, deps, signal)
  await ledger.recordVerified(job, null, epoch)
  await ledger.finish(job, epoch)
}

async function compare(job: Job, deps: JobDeps, signal: AbortSignal): Promise<void> {
  const { backup, operationId } = job
  const { engine, images } = regionOf(deps, backup.region)
  const files = filesOf(deps, job, signal)
  const step = stepOf(deps, job)
  await step('check')
  const manifest = await files.readManifest(backup.manifestHash ?? '')
  await files.check(manifest)
  await step('services')
  const stack = scratchId(operationId)
  try {
    const ids = { tenantId: manifest.tenant_id, homeId: manifest.tenant_id }
    const { place: location, login } = await makeScratchHome(engine, stack, await images(signal), ids, signal)
    const onComplaint = (text: string) => deps.log.warn({ backup: backup.id, text }, 'pg_restore complained')
    await loadHome(
      { manifest, files, place: location, login, newId: undefined, migrations: deps.migrations, step, onComplaint },
      signal,
    )
  } finally {
    // Whoever leads next removes what is left after a kill.
    await engine.remove(stack, deps.clock.timeout(removeMilliseconds))
  }
}
