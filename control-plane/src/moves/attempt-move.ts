// One attempt of a move, or of its revert.
import { BackupError, publicReason, type LoadFailure } from '../backups/index.ts'
import { EngineError, type EngineErrorCode } from '../engines/index.ts'
import { isLostConnection } from '../platform/lost-connection.ts'
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'
import { isWanted, type MoveJob } from './move.ts'
import type { Outcome } from './run-move.ts'

const maxAttempts = 3
const interruptions: readonly EngineErrorCode[] = ['NOT_FOUND', 'UNHEALTHY', 'ENGINE_UNREACHABLE', 'HOST_UNREACHABLE']

/** The failures of a load, as those of the copy that a move makes. */
const copyFailures: Record<LoadFailure['kind'], string> = {
  'not created': 'The home could not be copied',
  different: 'The copy differs from the home',
}

/** The two parts of an attempt: the work, and the end of what has been done. */
interface Work {
  /** Completes what has switched, and otherwise removes what an attempt has left. */
  finish: (job: MoveJob) => Promise<Outcome>
  run: (job: MoveJob) => Promise<void>
}

/** The end of an attempt. `reason` is public. */
export type Attempted = { outcome: Outcome; reason: string; failure: unknown; isRetried: boolean }

/** Completes or removes what an earlier attempt has left, and makes the next one, if the move is still wanted. */
export async function attemptMove(
  job: MoveJob,
  { finish, run }: Work,
  { log }: Pick<MoveDeps, 'log'>,
  lost: AbortSignal,
): Promise<Attempted> {
  let outcome = await finish(job)
  let failure: unknown
  let isRetried = false
  if (outcome === 'not moved' && isWanted(job) && job.attempts < maxAttempts) {
    await run(job).catch((error: unknown) => {
      lost.throwIfAborted()
      failure = error
      const details = { operation: job.operationId, tenant: job.tenantId, from: job.from, to: job.to }
      log.warn({ ...details, err: error }, 'A move failed.')
    })
    outcome = await finish({ ...job, step: 'hold' })
    const isTemporary = failure instanceof MoveError ? failure.isTemporary : isInterruption(failure)
    isRetried = isTemporary && job.attempts + 1 < maxAttempts
  }
  return { outcome, failure, isRetried: isRetried && outcome === 'not moved', reason: reasonOf(job, failure) }
}

/** Whether a connection to Postgres was lost, or could not be opened because no container of it runs, or none accepts writes. */
function isInterruption(failure: unknown): boolean {
  return isLostConnection(failure) || (failure instanceof EngineError && interruptions.includes(failure.code))
}

function reasonOf({ canceled }: MoveJob, failure: unknown): string {
  if (failure instanceof MoveError) return failure.message
  if (failure === undefined)
    return canceled === true ? 'An operator has canceled the move.' : 'The move was interrupted too often.'
  const { loadFailure } = failure instanceof BackupError ? failure : {}
  return loadFailure === undefined ? publicReason(failure) : `${copyFailures[loadFailure.kind]}: ${loadFailure.what}.`
}
