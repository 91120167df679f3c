// The errors of backups, with messages that the operator may see.
import { EngineError } from '../engines/index.ts'
import { HomeError } from '../homes/index.ts'
import { isLostConnection } from '../platform/lost-connection.ts'

/**
 * The code of an error. `DAMAGED`: the stored data is not what was written. `MISMATCH`: the restored data is not what
 * was stored. Retrying helps with neither.
 */
type BackupErrorCode =
  | 'DAMAGED'
  | 'MISMATCH'
  | 'INCOMPLETE'
  | 'HOME_DAMAGED'
  | 'DISK_FULL'
  | 'TARGET_UNAVAILABLE'
  | 'NOT_RUNNING'
  | 'NO_ENGINE'
  | 'FAILED'

/** A dump of a home that was not loaded: `what` could not be created, or is the difference that was found. Both are public. */
export interface LoadFailure {
  kind: 'not created' | 'different'
  what: string
}

/** A failure of the work on a backup, with a public message. */
export class BackupError extends Error {
  readonly code: BackupErrorCode
  /** The failure of a load; undefined for other errors. Its dump need not be that of a backup. */
  readonly loadFailure: LoadFailure | undefined

  /** Creates the error. `message` is public: it names components and counts, never content. */
  constructor(code: BackupErrorCode, message: string, options: ErrorOptions & { loadFailure?: LoadFailure } = {}) {
    super(message, options)
    this.code = code
    this.loadFailure = options.loadFailure
  }
}

/** Returns the error of a target without room. */
export function fullTarget(target: string, cause: unknown): BackupError {
  return new BackupError('DISK_FULL', `The backup target "${target}" has no space left.`, { cause })
}

/** Returns the error of a target that cannot be read or written now. */
export function unavailableTarget(target: string, cause: unknown): BackupError {
  return new BackupError('TARGET_UNAVAILABLE', `The backup target "${target}" cannot be used now.`, { cause })
}

/** Whether a target is at fault, so that another one may succeed. */
export function isTargetFailure(error: unknown): error is BackupError {
  return error instanceof BackupError && (error.code === 'DISK_FULL' || error.code === 'TARGET_UNAVAILABLE')
}

export function missingPart(part: string): BackupError {
  return new BackupError('INCOMPLETE', `The part "${part}" of the backup is missing.`)
}

/** Thrown when the work is no longer needed: its operation was superseded or its tenant deleted. */
export class OperationSuperseded extends Error {}

/** Returns the text for the operation's `error`. The output of an engine may quote rows, so it stays in the log. */
export function publicReason(error: unknown): string {
  if (error instanceof BackupError || error instanceof HomeError) return error.message
  if (error instanceof OperationSuperseded) return 'The operation was superseded or its tenant deleted.'
  if (error instanceof EngineError && error.code !== 'ENGINE_FAILED') return error.message
  if (isLostConnection(error)) return 'The connection to Postgres was lost.'
  return 'An internal error occurred. The log of the control plane has the details.'
}

/** Whether retrying the same work would fail again. */
export function isPermanent(error: unknown): boolean {
  return (
    error instanceof BackupError &&
    (error.code === 'DAMAGED' || error.code === 'MISMATCH' || error.code === 'NO_ENGINE')
  )
}
