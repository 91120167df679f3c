// Opens a backup in a target where it is undamaged. Everything is read and compared before anything else is done with it.
import type { Job } from './backup.ts'
import { BackupError } from './backup-error.ts'
import type { BackupTarget } from './backup-target.ts'
import type { JobDeps } from './job-deps.ts'
import type { Manifest } from './manifest.ts'
import { openFiles, type BackupFiles } from './parts.ts'

export interface GoodCopy {
  manifest: Manifest
  files: BackupFiles
}

type Deps = Pick<JobDeps, 'targets' | 'log'>

/**
 * Returns the first copy of which every part is the one that was written.
 * @throws BackupError DAMAGED, INCOMPLETE, TARGET_UNAVAILABLE: the error of the first copy, when no copy is good
 */
export async function openGoodCopy(job: Job, deps: Deps, signal: AbortSignal): Promise<GoodCopy> {
  const { good, problems } = await checkCopies(job, deps, signal, (copies) => copies.length > 0)
  if (good !== undefined) return good
  const [problem = nowhere()] = problems
  throw problem
}

/**
 * Checks every copy, and returns the first.
 * @throws BackupError DAMAGED, INCOMPLETE, TARGET_UNAVAILABLE: the error of the first copy that is not good
 */
export async function openCheckedCopies(job: Job, deps: Deps, signal: AbortSignal): Promise<GoodCopy> {
  const { good, problems } = await checkCopies(job, deps, signal, () => false)
  if (problems.length > 0) throw problems[0]
  if (good === undefined) throw nowhere()
  return good
}

/** Checks copies until `isEnough`. */
async function checkCopies(
  { backup, key }: Job,
  { targets, log }: Deps,
  signal: AbortSignal,
  isEnough: (good: readonly GoodCopy[]) => boolean,
): Promise<{ good: GoodCopy | undefined; problems: unknown[] }> {
  const good: GoodCopy[] = []
  const problems: unknown[] = []
  for (const target of await targets.holders(backup.id)) {
    if (isEnough(good)) break
    const files = openFiles(target, backup.id, key, signal)
    try {
      const manifest = await files.readManifest(backup.manifestHash ?? '')
      await files.check(manifest)
      good.push({ manifest, files })
    } catch (cause) {
      signal.throwIfAborted()
      log.warn({ backup: backup.id, target: target.name, err: cause }, 'A copy of a backup cannot be used.')
      problems.push(targets.each.length > 1 ? namedError(target, cause) : cause)
    }
  }
  return { good: good[0], problems }
}

function namedError(target: BackupTarget, cause: unknown): unknown {
  if (!(cause instanceof BackupError) || cause.code === 'TARGET_UNAVAILABLE') return cause
  return new BackupError(cause.code, `The copy in the target "${target.name}" is not good. ${cause.message}`, { cause })
}

function nowhere(): BackupError {
  return new BackupError('INCOMPLETE', 'No backup target has the backup.')
}
