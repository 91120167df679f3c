// The files of archives in all targets. A file is written to the first target that accepts it, and copied to the others later
// (`copy-archives.ts`). It is read from any target whose copy is whole.
import type { Clock } from '../../platform/clock.ts'
import { isTargetFailure } from '../backup-error.ts'
import { decrypted } from '../encrypted-stream.ts'
import { createTargetCalls, type TargetCalls } from '../target-calls.ts'
import type { ArchiveTarget } from './archive-target.ts'
import { timelyTarget } from './timely-target.ts'

/** The files of archives, in one or more targets. */
export interface ArchiveFiles {
  readonly targets: readonly ArchiveTarget[]
  /**
   * Writes a file, or replaces it. `content` is called for each target that is attempted.
   * @returns the bytes that were written
   * @throws BackupError DISK_FULL, TARGET_UNAVAILABLE: the error of the first target, when no target accepts the file
   */
  write(archiveId: string, name: string, content: () => AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<number>
  /**
   * Reads and decrypts a file. With several targets, a copy is read and checked before anything of it is returned.
   * @throws BackupError INCOMPLETE, DAMAGED, TARGET_UNAVAILABLE: the error of the first target, when no copy is whole
   */
  read(archiveId: string, name: string, opening: Opening, signal: AbortSignal): AsyncIterable<Uint8Array>
  /** Lists the files of an archive in all targets that respond. @throws the first error when none responds */
  names(archiveId: string): Promise<string[]>
  /** Removes a file from all targets that respond. @returns its bytes @throws the first error when none responds */
  remove(archiveId: string, name: string): Promise<number>
  /** Removes all files of an archive from all targets, and then reports the first error. */
  removeAll(archiveId: string): Promise<void>
}

/** The key and the context that decrypt a file. */
export interface Opening {
  key: Uint8Array
  context: string
}

/** Combines targets, whose calls end in time. There is at least one. @param calls the calls of other stores in these targets */
export function createArchiveFiles(
  each: readonly ArchiveTarget[],
  clock: Pick<Clock, 'timeout'>,
  calls: TargetCalls = createTargetCalls(clock),
): ArchiveFiles {
  const targets = each.map((target) => timelyTarget(target, calls))
  const settled = <T>(work: (target: ArchiveTarget) => Promise<T>) => Promise.allSettled(targets.map(work))
  /** Returns the results of the targets that respond. */
  const responses = async <T>(work: (target: ArchiveTarget) => Promise<T>): Promise<T[]> => {
    const results = await settled(work)
    const values = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    for (const result of results) if (values.length === 0 && result.status === 'rejected') throw result.reason
    return values
  }

  return {
    targets,

    async write(archiveId, name, content, signal) {
      let failure: unknown
      for (const target of targets) {
        try {
          return await target.write(archiveId, name, content(), signal)
        } catch (cause) {
          signal.throwIfAborted()
          if (!isTargetFailure(cause)) throw cause
          failure ??= cause
        }
      }
      throw failure
    },

    async *read(archiveId, name, { key, context }, signal) {
      const open = (target: ArchiveTarget) => decrypted(target.read(archiveId, name, signal), key, context)
      const [only] = targets
      if (only !== undefined && targets.length === 1) return yield* open(only)
      let failure: unknown
      for (const target of targets) {
        try {
          // A target that does not respond is found by the small request.
          await target.has(archiveId, name)
          await drain(open(target))
        } catch (cause) {
          signal.throwIfAborted()
          failure ??= cause
          continue
        }
        return yield* open(target)
      }
      throw failure
    },

    names: async (archiveId) => [...new Set((await responses((target) => target.names(archiveId))).flat())],

    remove: async (archiveId, name) => Math.max(...(await responses((target) => target.remove(archiveId, name)))),

    async removeAll(archiveId) {
      for (const result of await settled((target) => target.removeAll(archiveId)))
        if (result.status === 'rejected') throw result.reason
    },
  }
}

/** Reads everything to its end. */
export async function drain(content: AsyncIterable<Uint8Array>): Promise<void> {
  const chunks = content[Symbol.asyncIterator]()
  while ((await chunks.next()).done !== true);
}
