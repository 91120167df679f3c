// The files of an archive that contain a part of its log, over all timelines.
import type { ArchiveFiles } from './archive-files.ts'
import { isHistory, isSegment, segmentsBetween, timelineOf } from './wal.ts'

/**
 * Returns the names of the files from the first to the last segment, both included, in order. The history of a timeline
 * comes before its segments. Within one timeline nothing is listed, so a name may be that of a missing file.
 */
export async function logFiles(
  archiveId: string,
  first: string,
  last: string,
  files: Pick<ArchiveFiles, 'names'>,
): Promise<Iterable<string>> {
  if (timelineOf(first) === timelineOf(last)) return segmentsBetween(first, last)
  const names = await files.names(archiveId)
  return names.filter((name) => (isSegment(name) || isHistory(name)) && name >= first && name <= last).sort()
}
