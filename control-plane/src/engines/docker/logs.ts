// A container's log: the Engine sends one frame a line, and very long lines in parts, each with a time of its own.
import { type LogLine, type LogOptions, EngineError } from '../index.ts'
import { segment, type EngineApi } from './engine-api.ts'
import { consumeStream } from './consume-stream.ts'
import { demultiplex, type Chunk } from './frames.ts'

/** Maximum length of a line; a longer line is split. */
const maxLineBytes = 256 * 1024

export async function* logs(
  api: EngineApi,
  container: string,
  options: LogOptions,
  signal: AbortSignal,
): AsyncGenerator<LogLine, undefined> {
  const doing = `read the log of ${container}`
  const query = {
    stdout: true,
    stderr: true,
    timestamps: true,
    follow: options.follow,
    tail: options.tail,
    ...(options.since === undefined ? {} : { since: unixTime(options.since) }),
  }
  const response = await api.open(
    { doing, method: 'GET', path: `/containers/${segment(container)}/logs`, query },
    signal,
  )
  // A log that is not followed arrives at once, so silence is an error.
  yield* readLines(demultiplex(consumeStream(doing, response, signal, options.follow ? {} : { silentSeconds: 60 })))
}

interface Pending {
  at: string
  parts: Uint8Array[]
  length: number
}

/** Joins the chunks of frames to lines. */
export async function* readLines(chunks: AsyncIterable<Chunk>): AsyncGenerator<LogLine, undefined> {
  const frames: Record<Chunk['stream'], Uint8Array[]> = { stdout: [], stderr: [] }
  const lines: Record<Chunk['stream'], Pending | undefined> = { stdout: undefined, stderr: undefined }
  for await (const { stream, bytes, isLast } of chunks) {
    frames[stream].push(bytes)
    if (!isLast) continue
    const { at, text, ends } = readFrame(Buffer.concat(frames[stream]))
    frames[stream] = []
    const line = (lines[stream] ??= { at, parts: [], length: 0 })
    line.parts.push(text)
    line.length += text.length
    if (!ends && line.length < maxLineBytes) continue
    yield lineOf(stream, line)
    lines[stream] = undefined
  }
  for (const stream of ['stdout', 'stderr'] as const) {
    const line = lines[stream]
    if (line !== undefined) yield lineOf(stream, line)
  }
}

function lineOf(stream: Chunk['stream'], { at, parts }: Pending): LogLine {
  return { at, stream, text: Buffer.concat(parts).toString() }
}

/** Parses `TIME TEXT\n`. Without the newline, the line continues in the next frame. */
function readFrame(frame: Buffer): { at: string; text: Buffer; ends: boolean } {
  const space = frame.indexOf(' ')
  if (space === -1) throw new EngineError('ENGINE_FAILED', 'The Docker Engine sent a line of a log without a time.')
  const ends = frame.at(-1) === 0x0a
  return { at: frame.toString('latin1', 0, space), text: frame.subarray(space + 1, ends ? -1 : undefined), ends }
}

/** Converts ISO 8601 to the Engine's seconds with nanoseconds. @throws EngineError for an invalid time */
function unixTime(iso: string): string {
  const [, seconds, fraction = '', zone = 'Z'] =
    /^([\d-]+T[\d:]+)(?:\.(\d{1,9}))?\d*(Z|[+-]\d\d:\d\d)?$/.exec(iso) ?? []
  const time = Date.parse(`${seconds ?? ''}${zone}`)
  if (Number.isNaN(time))
    throw new EngineError('ENGINE_FAILED', `Invalid time "${iso.slice(0, 100)}". Allowed: ISO 8601.`)
  return `${time / 1000}.${fraction.padEnd(9, '0')}`
}
