// What can go wrong with a backup, in words that may be shown to the operator.
import { EngineError } from '../engines/index.ts'
import { HomeError } from '../homes/index.ts'

/**
 * `DAMAGED`: what was stored is not what was written. `MISMATCH`: what was restored is not what was stored. Trying again
 * helps with neither.
 */
type BackupErrorCode =
  'DAMAGED' | 'MISMATCH' | 'INCOMPLETE' | 'HOME_DAMAGED' | 'DISK_FULL' | 'NOT_RUNNING' | 'NO_ENGINE' | 'FAILED'

export class BackupError extends Error {
  readonly code: BackupErrorCode

  /** `message` is public: it names components and counts, never content. */
  constructor(code: BackupErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** Thrown when nobody wants the work any more: the operation was superseded, its tenant deleted. */
export class NotWanted extends Error {}

/** For the operation's `error`; an engine's output, which may quote rows, stays in the log. */
export function publicReason(error: unknown): string {
  if (error instanceof BackupError || error instanceof HomeError) return error.message
  if (error instanceof NotWanted) return 'nobody wanted it any more'
  if (error instanceof EngineError && error.code !== 'ENGINE_FAILED') return error.message
  return 'it failed inside; the log of the control plane says why'
}

/** Whether the same work may come out well the next time. */
export function isLasting(error: unknown): boolean {
  return (
    error instanceof BackupError &&
    (error.code === 'DAMAGED' || error.code === 'MISMATCH' || error.code === 'NO_ENGINE')
  )
}
