// Decides whether a failed round trip may succeed when it is repeated. Pure.
import { RuntimeError } from '../errors.ts'
import { MessageTooLongError } from './message-guard.ts'
import { isStalePlan, type RoundTripError } from './round-trip-error.ts'

/** The SQLSTATE of a cancelled statement. */
const cancelled = '57014'
/** SQLSTATEs of a session that ends, or whose statement is cancelled. */
const endings = new Set(['57P01', '57P02', '57P05', cancelled])
/** A statement that has run longer may be the reason for the session's end. */
const briefMilliseconds = 1_000

interface FailedRun {
  /** The time for which the round trip ran. */
  milliseconds: number
  /** Whether its statements change nothing. */
  onlyReads: boolean
  /** The maximum wait for the next primary; 0 for a database without a failover. */
  failoverMilliseconds: number
}

/** Whether the statements had no effect or change nothing, and failed for a temporary reason. */
export function isWorthRepeating(
  { undone, sqlstate, cause }: RoundTripError,
  { milliseconds, onlyReads, failoverMilliseconds }: FailedRun,
): boolean {
  if (isStalePlan(cause)) return true
  // A failover ends statements that have run for any time, but it cancels none.
  if (milliseconds > Math.max(briefMilliseconds, sqlstate === cancelled ? 0 : failoverMilliseconds)) return false
  if (cause instanceof MessageTooLongError || cause instanceof RuntimeError) return false
  return (undone || onlyReads) && (sqlstate === undefined || endings.has(sqlstate))
}
