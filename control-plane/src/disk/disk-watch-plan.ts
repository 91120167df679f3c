// What a tenant's volumes hold beside what its plan allows: what is said of it, and whether it goes on. Pure.
import type { Plan } from '../plans/index.ts'
import type { Condition, Desired } from '../tenants/index.ts'

/** A tenant with volumes of its own. */
export interface WatchedTenant {
  id: string
  generation: number
  desired: Desired
  plan: Pick<Plan, 'documentBytes' | 'fileBytes'>
  /** What was last said of its disk. */
  reported: Condition | undefined
  /** A backup or restore is under way: a home that is replaced is there twice. */
  isCopied: boolean
  /** When an operator last ended a suspension. */
  resumedAt: Date | undefined
}

interface DiskVerdict {
  /** Undefined: there is nothing to be said. */
  condition: Condition | undefined
  /** It is to be suspended now. */
  suspend: boolean
}

/** Indexes, versions of rows and what deletes leave; beside them what Postgres writes ahead. */
const quotaFactor = 1.5
const writeAheadBytes = 2 ** 30
const warnedAt = 0.8
/** To make room: an operator can only resume it as it was. */
const graceMilliseconds = 600_000

/** Public. */
export const suspendReason = 'it takes more disk than its plan allows'

/** Infinite where a quota is. */
export function allowedBytes({ documentBytes, fileBytes }: WatchedTenant['plan']): number {
  return documentBytes === null || fileBytes === null
    ? Infinity
    : (documentBytes + fileBytes) * quotaFactor + writeAheadBytes
}

export function judgeDisk(
  { desired, plan, isCopied, resumedAt }: Omit<WatchedTenant, 'id' | 'generation' | 'reported'>,
  bytes: number,
  at: Date,
): DiskVerdict {
  const allowed = allowedBytes(plan)
  if (bytes < allowed * warnedAt) return { condition: undefined, suspend: false }
  const message = `its volumes hold ${gigabytes(bytes)} GB of the ${gigabytes(allowed)} GB of disk that its plan allows`
  const observed_at = at.toISOString()
  if (bytes <= allowed)
    return {
      condition: { type: 'Disk', status: 'True', reason: 'DiskNearlyFull', message, observed_at },
      suspend: false,
    }
  const isSpared = isCopied || (resumedAt !== undefined && at.getTime() - resumedAt.getTime() < graceMilliseconds)
  return {
    condition: { type: 'Disk', status: 'False', reason: 'DiskExceeded', message, observed_at },
    suspend: desired === 'active' && !isSpared,
  }
}

/** Whether there is something new in it, the time apart. */
export function isChanged(before: Condition | undefined, after: Condition | undefined): boolean {
  return before?.reason !== after?.reason || before?.message !== after?.message
}

function gigabytes(bytes: number): string {
  return (bytes / 1e9).toFixed(1)
}
