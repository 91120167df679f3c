// A target of archives whose calls end in time: one that does not respond counts as unavailable, and is then skipped at once.
import { unlessAborted } from '../../platform/unless-aborted.ts'
import { readMilliseconds, type TargetCalls } from '../target-calls.ts'
import type { ArchiveTarget } from './archive-target.ts'
import { isSegment } from './wal.ts'

const segmentMilliseconds = 30_000
/** An archive of a month has more files than one request lists. */
const listMilliseconds = 60_000
const removeMilliseconds = 60_000
const removeAllMilliseconds = 600_000

/** Limits the time of a target's calls. */
export function timelyTarget(target: ArchiveTarget, calls: TargetCalls): ArchiveTarget {
  const has = (archiveId: string, name: string) =>
    calls.inTime(target, readMilliseconds, () => target.has(archiveId, name))
  return {
    name: target.name,

    async write(archiveId, name, content, signal) {
      if (isSegment(name))
        return unlessAborted(
          calls.inTime(target, segmentMilliseconds, (limit) =>
            target.write(archiveId, name, content, AbortSignal.any([signal, limit])),
          ),
          signal,
        )
      // A target that does not respond is found by the small request, before the base backup is read.
      await unlessAborted(has(archiveId, name), signal)
      return unlessAborted(
        calls.writing(target, content, (watched, limit) =>
          target.write(archiveId, name, watched, AbortSignal.any([signal, limit])),
        ),
        signal,
      )
    },

    read: (archiveId, name, signal) => calls.reading(target, target.read(archiveId, name, signal)),
    has,
    names: (archiveId) => calls.inTime(target, listMilliseconds, () => target.names(archiveId)),
    remove: (archiveId, name) => calls.inTime(target, removeMilliseconds, () => target.remove(archiveId, name)),
    removeAll: (archiveId) => calls.inTime(target, removeAllMilliseconds, () => target.removeAll(archiveId)),
  }
}
