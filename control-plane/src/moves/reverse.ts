// Why changes stop to flow back into the old home after a move. Pure.
import { isAtDestination, type HomeLocation, type MoveJob, type ReverseJob } from './move.ts'

/** A reverse as the control database has it now. */
export interface ReverseFacts {
  reverse: ReverseJob['reverse']
  /** The tenant; undefined if it does not exist any more. */
  tenant: (HomeLocation & { isDeleted: boolean }) | undefined
  /** The operation that reverts the move, if it is not settled. */
  revert: MoveJob | undefined
  /** Whether a backup was restored into the home after the move. */
  isRestored: boolean
}

/** The reason of a reverse that has led back. */
export const revertedReason = 'The move was reverted.'

/** Returns the reason for which a reverse ends; undefined while it continues. */
export function reasonToEnd(
  { reverse, tenant, isRestored }: ReverseFacts,
  job: ReverseJob,
  now: Date,
): string | undefined {
  if (reverse.ends !== undefined) return reverse.ends
  if (tenant === undefined || tenant.isDeleted) return 'The tenant is deleted.'
  if (!isAtDestination(job, tenant)) return revertedReason
  if (isRestored) return 'A backup was restored after the move.'
  return now.toISOString() >= reverse.until ? 'The time for a revert is over.' : undefined
}
