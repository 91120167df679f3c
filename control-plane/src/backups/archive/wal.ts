// Names and positions in Postgres' write-ahead log (WAL), whose segments are files of 16 MiB. Pure.

/** Bytes of a segment. The images create data directories with the default size. */
const segmentBytes = 16n * 1024n * 1024n
const segmentsPerLog = 0x1_0000_0000n / segmentBytes

/** Whether a text is the name of a segment, for example `000000010000000000000002`. */
export function isSegment(name: string): boolean {
  return /^[0-9A-F]{24}$/.test(name)
}

/** Whether a text is the name of the file that states where a timeline branched off, for example `00000002.history`. */
export function isHistory(name: string): boolean {
  return /^[0-9A-F]{8}\.history$/.test(name)
}

/** Returns the timeline of a segment or of a history file. Every promotion of a replica begins a new one. */
export function timelineOf(name: string): number {
  return Number.parseInt(name.slice(0, 8), 16)
}

/** Reads a position such as `0/2000028`. @throws RangeError for another form */
export function toPosition(text: string): bigint {
  const [, high, low] = /^([0-9A-F]{1,8})\/([0-9A-F]{1,8})$/i.exec(text) ?? []
  if (high === undefined || low === undefined) throw new RangeError('Invalid position in the WAL.')
  return (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`)
}

/** Returns the name of the segment that contains a position. */
export function segmentAt(position: bigint, timeline = 1): string {
  const number = position / segmentBytes
  return [BigInt(timeline), number / segmentsPerLog, number % segmentsPerLog].map(eightDigits).join('')
}

/** Returns the position at which a segment ends, which is the start of the next one. */
export function endOfSegment(name: string): bigint {
  const [log, segment] = [name.slice(8, 16), name.slice(16)].map((part) => BigInt(`0x${part}`))
  return ((log ?? 0n) * segmentsPerLog + (segment ?? 0n) + 1n) * segmentBytes
}

/** Returns the position at which a segment starts. */
export function startOfSegment(name: string): bigint {
  return endOfSegment(name) - segmentBytes
}

/** Returns the name of the segment that follows on the same timeline. */
export function nextSegment(name: string): string {
  return segmentAt(endOfSegment(name), timelineOf(name))
}

/** Yields the names from the first to the last segment of one timeline, both included. */
export function* segmentsBetween(first: string, last: string): Generator<string, undefined> {
  for (let name = first; name <= last; name = nextSegment(name)) yield name
}

function eightDigits(number: bigint): string {
  return number.toString(16).toUpperCase().padStart(8, '0')
}
