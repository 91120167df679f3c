// Compares the size of a tenant's volumes with what its plan allows: decides its condition, and whether it is
// suspended. Pure.
import type { Plan } from '../plans/index.ts'
import type { Condition, Desired } from '../tenants/index.ts'

/** A tenant with its own volumes. */
export interface WatchedTenant {
  id: string
  generation: number
  desired: Desired
  plan: Pick<Plan, 'documentBytes' | 'fileBytes'>
  /** The condition of its disk that was reported last. */
  reported: Condition | undefined
  /** Whether a backup, restore or verification is in progress. A home that is being replaced exists twice. */
  isCopied: boolean
  /** The time at which an operator last ended a suspension. */
  resumedAt: Date | undefined
}

interface DiskVerdict {
  /** The condition to report; undefined without one. */
  condition: Condition | undefined
  /** Whether the tenant is to be suspended now. */
  suspend: boolean
}

/** Allows for indexes, row versions and dead rows. `writeAheadBytes` allows for the write-ahead log. */
const quotaFactor = 1.5
const writeAheadBytes = 2 ** 30
const warnedAt = 0.8
/** The time in which a resumed tenant can delete data before it is suspended again. */
const graceMilliseconds = 600_000

/** The reason of a suspension, which is public. */
export const suspendReason = 'it takes more disk than its plan allows'

/** Matches the volume of a Postgres: `data`, or `data-1` of a member of a cluster. */
const dataVolume = /^data(?:-\d+)?$/

/**
 * Returns the bytes that count against the plan: those of the tenant's volumes, and of a cluster's members only the largest one,
 * because each has a copy of the same data.
 */
export function chargeableBytes(volumes: Readonly<Record<string, number>>): number {
  const sizes = Object.entries(volumes)
  const copies = sizes.filter(([name]) => dataVolume.test(name)).map(([, bytes]) => bytes)
  const others = sizes.filter(([name]) => !dataVolume.test(name)).map(([, bytes]) => bytes)
  return Math.max(0, ...copies) + others.reduce((sum, bytes) => sum + bytes, 0)
}

/** Returns the bytes that the plan allows; infinite where a quota is unlimited. */
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

/** Whether two conditions differ in more than their time. */
export function isChanged(before: Condition | undefined, after: Condition | undefined): boolean {
  return before?.reason !== after?.reason || before?.message !== after?.message
}

function gigabytes(bytes: number): string {
  return (bytes / 1e9).toFixed(1)
}
