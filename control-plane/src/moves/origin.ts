// Where a move brings a home from.
import type { End } from './end.ts'

/** The location of a home before a move. Every call may be repeated at any point. */
export interface Origin extends End {
  /** Whether a deletion of the tenant has removed it. Then no move has switched that is not recorded. */
  isRemoved(signal: AbortSignal): Promise<boolean>
  /** Removes what the move has left, after its switch. */
  removeRemains(signal: AbortSignal): Promise<void>
  /** Closes a home that stays for a revert to the tenant's logins. */
  close(signal: AbortSignal): Promise<void>
  /** Starts services of the tenant's own that were stopped. */
  ensureRunning(signal: AbortSignal): Promise<void>
  /** Removes what has stayed for a revert. */
  removeRetained(signal: AbortSignal): Promise<void>
}
