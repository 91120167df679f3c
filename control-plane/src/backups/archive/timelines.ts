// The order of segments over timelines: a promoted replica continues the log on a new timeline, which branches off within a
// segment. Pure.
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { endOfSegment, nextSegment, segmentAt, startOfSegment, timelineOf, toPosition } from './wal.ts'

/** The ends of the timelines before a timeline, the oldest first. */
export type TimelineHistory = readonly { timeline: number; end: bigint }[]

/** Reads a history file of Postgres: a line for each earlier timeline with its number and the position of its end. */
export function readHistory(text: string): TimelineHistory {
  return text
    .split('\n')
    .map((line) => /^\s*(\d+)\s+([0-9A-Fa-f]+\/[0-9A-Fa-f]+)/.exec(line))
    .flatMap((match) => {
      const [, timeline, position] = match ?? []
      return timeline === undefined || position === undefined
        ? []
        : [{ timeline: Number(timeline), end: toPosition(position) }]
    })
}

const maxHistoryBytes = 2 ** 20
/** The bytes with which compressed content of `zstd` begins. */
const zstdMagic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])

/** Reads a history file as the spool contains it, compressed. @throws RangeError if it has more than 1 MiB */
export function unpackHistory(content: Uint8Array): TimelineHistory {
  const decompress = zstdMagic.equals(content.subarray(0, zstdMagic.length)) ? zstdDecompressSync : gunzipSync
  return readHistory(decompress(content, { maxOutputLength: maxHistoryBytes }).toString())
}

/**
 * Whether a segment continues a log whose last segment is `last`: it is the next one, or the first of a later timeline
 * whose predecessors are complete in the log.
 * @param history the history of the segment's timeline; undefined if it is not known
 */
export function continuesLog(last: string, name: string, history: TimelineHistory | undefined): boolean {
  if (name === nextSegment(last)) return true
  const branch = history?.at(-1)
  const timeline = timelineOf(name)
  if (branch === undefined || timeline <= timelineOf(last) || name !== segmentAt(branch.end, timeline)) return false
  const reached = timelineOf(last)
  if (history?.some((one) => one.timeline === reached) !== true) return false
  // The timeline that finished the segment before the branch. Later ones finished none before it.
  const start = startOfSegment(name)
  const owner = history.find(({ end }) => end >= start)?.timeline ?? Infinity
  return owner < reached || (owner === reached && endOfSegment(last) >= start)
}

/** Whether a base backup that ends in the segment `stop` may end after the branch that begins with the segment `branch`. */
export function isCutOff(stop: string, branch: string): boolean {
  return timelineOf(stop) < timelineOf(branch) && startOfSegment(stop) >= startOfSegment(branch)
}
