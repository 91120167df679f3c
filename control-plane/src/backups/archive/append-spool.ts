// Stores what waits in one spool and continues an archive's log.
import { encrypted } from '../encrypted-stream.ts'
import type { ArchiveFiles } from './archive-files.ts'
import { fileContext } from './file-names.ts'
import type { Observation } from './progress.ts'
import { readSpool, type ArchivedServer, type SpooledFile, type SpoolRole } from './spool.ts'
import { continuesLog, type TimelineHistory, unpackHistory } from './timelines.ts'
import { isHistory, nextSegment, timelineOf } from './wal.ts'

/** The log of an archive, and where its files are written. */
export interface ArchiveLog {
  archiveId: string
  key: Uint8Array
  files: Pick<ArchiveFiles, 'write'>
}

/** The result of one read of a spool. */
export interface Appended {
  /** The first segment that was stored; undefined for none. */
  first: string | undefined
  /** The last segment of the log, which may have been stored earlier. */
  last: string | undefined
  /** The first segments of timelines that the log did not have. */
  branches: readonly string[]
  /** Stored bytes. */
  bytes: number
  /** Number of files that were read. */
  read: number
  /** The report of Postgres; undefined for a replica, and for a spool that is not of this archive. */
  observation: Observation | undefined
  /** The segment that is missing; undefined if the log continues. */
  gap: string | undefined
}

/**
 * Stores the segments of a spool that continue the log. It stops at the first one that does not.
 * @param last the last segment of the log; undefined before the first one
 */
export async function appendSpool(
  { archiveId, key, files }: ArchiveLog,
  server: Pick<ArchivedServer, 'engine' | 'stack' | 'service'>,
  role: SpoolRole,
  last: string | undefined,
  signal: AbortSignal,
): Promise<Appended> {
  const branches: string[] = []
  const histories = new Map<number, { history: TimelineHistory; file: SpooledFile }>()
  const result: Appended = {
    first: undefined,
    last,
    branches,
    bytes: 0,
    read: 0,
    observation: undefined,
    gap: undefined,
  }
  const write = async (file: SpooledFile) => {
    const content = () => encrypted(once(file), key, fileContext(archiveId, file.name))
    result.bytes += await files.write(archiveId, file.name, content, signal)
  }
  for await (const item of readSpool(server, { archiveId, storedUntil: last, role }, signal)) {
    if ('position' in item) {
      result.observation = item
      continue
    }
    result.read++
    const { name, content } = item
    if (result.last !== undefined && name <= result.last) continue
    if (isHistory(name)) {
      histories.set(timelineOf(name), { history: unpackHistory(content), file: item })
      continue
    }
    const known = histories.get(timelineOf(name))
    if (result.last !== undefined && !continuesLog(result.last, name, known?.history)) {
      result.gap = nextSegment(result.last)
      break
    }
    // A timeline's history is stored before its first segment, which needs it.
    if (result.last !== undefined && timelineOf(name) > timelineOf(result.last)) {
      if (known !== undefined) await write(known.file)
      branches.push(name)
    }
    await write(item)
    result.first ??= name
    result.last = name
  }
  return result
}

async function* once({ content }: SpooledFile): AsyncGenerator<Uint8Array, undefined> {
  yield content
}
