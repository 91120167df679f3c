// The targets of an installation. A backup is made in one of them, and then copied to all others.
import type { Clock } from '../platform/clock.ts'
import type { BackupTarget, TargetEntry } from './backup-target.ts'
import { createTargetCalls, readMilliseconds, type TargetCalls } from './target-calls.ts'

/** The entries of one target; undefined when it could not be listed. */
interface TargetListing {
  target: BackupTarget
  entries: readonly TargetEntry[] | undefined
  /** The reason why the target could not be listed. */
  error: unknown
}

/** The state of a backup in one target. `unavailable`: the target does not respond. */
export interface Copy {
  target: string
  state: 'complete' | 'missing' | 'unavailable'
}

/** All backup targets, in the operator's order. A target that does not respond in time counts as unavailable. */
export interface BackupTargets {
  readonly each: readonly BackupTarget[]
  /** Returns the state of each target's copy of a backup. */
  copies(backupId: string): Promise<Copy[]>
  /** Lists all targets. @throws BackupError TARGET_UNAVAILABLE when none can be listed */
  list(backupId?: string): Promise<TargetListing[]>
  /**
   * Returns the targets with a whole copy, quarantined or not.
   * @throws BackupError TARGET_UNAVAILABLE when there is none, and one of the targets could not be listed
   */
  holders(backupId: string): Promise<BackupTarget[]>
  /**
   * Finds a whole copy outside of the quarantine, and the bytes of these parts of it.
   * @throws BackupError TARGET_UNAVAILABLE when there is none, and one of the targets could not be read
   */
  committed(backupId: string, parts: readonly string[]): Promise<{ target: BackupTarget; bytes: number } | undefined>
  /** Calls `discard` of all targets, and then reports the first error. */
  discard(backupId: string): Promise<void>
  /** Calls `remove` of all targets, and then reports the first error. */
  remove(backupId: string): Promise<void>
  /** Calls `release` of all targets, and then reports the first error. */
  release(backupId: string): Promise<void>
}

const changeMilliseconds = 60_000

/** Combines targets. There is at least one. @param calls the calls that other stores in these targets share */
export function createTargets(
  each: readonly BackupTarget[],
  clock: Pick<Clock, 'timeout'>,
  calls: TargetCalls = createTargetCalls(clock),
): BackupTargets {
  const settled = <T>(work: (target: BackupTarget) => Promise<T>, milliseconds = readMilliseconds) =>
    Promise.allSettled(each.map((target) => calls.inTime(target, milliseconds, () => work(target))))
  const inAll = async (work: (target: BackupTarget) => Promise<unknown>) => {
    for (const result of await settled(work, changeMilliseconds)) if (result.status === 'rejected') throw result.reason
  }
  /** Returns the results that are not undefined. @throws the first error when there is no such result */
  const found = async <T>(work: (target: BackupTarget) => Promise<T | undefined>): Promise<T[]> => {
    const results = await settled(work)
    const values = results.flatMap((result): T[] =>
      result.status === 'fulfilled' && result.value !== undefined ? [result.value] : [],
    )
    for (const result of results) if (values.length === 0 && result.status === 'rejected') throw result.reason
    return values
  }
  return {
    each,

    async copies(backupId) {
      const listings = await settled((target) => target.list(backupId))
      return each.map(({ name }, index): Copy => {
        const listing = listings[index]
        if (listing?.status !== 'fulfilled') return { target: name, state: 'unavailable' }
        const isComplete = listing.value.some(({ content }) => content === 'whole')
        return { target: name, state: isComplete ? 'complete' : 'missing' }
      })
    },

    async list(backupId) {
      const listings = await settled((target) => target.list(backupId))
      const [first] = listings
      if (first?.status === 'rejected' && listings.every(({ status }) => status === 'rejected')) throw first.reason
      return each.map((target, index) => {
        const listing = listings[index]
        return listing?.status === 'fulfilled'
          ? { target, entries: listing.value, error: undefined }
          : { target, entries: undefined, error: listing?.reason as unknown }
      })
    },

    holders: (backupId) =>
      found(async (target) =>
        (await target.list(backupId)).some(({ content }) => content === 'whole') ? target : undefined,
      ),

    async committed(backupId, parts) {
      const copies = await found(async (target) => {
        const bytes = await target.size(backupId, parts)
        return bytes === undefined ? undefined : { target, bytes }
      })
      return copies[0]
    },

    discard: (backupId) => inAll((target) => target.discard(backupId)),
    remove: (backupId) => inAll((target) => target.remove(backupId)),
    release: (backupId) => inAll((target) => target.release(backupId)),
  }
}
