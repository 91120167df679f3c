// The part `database` of a backup of a tenant that shares a database: frames, compressed. A frame is a type (one
// character), its length (4 bytes) and its content. No program of Postgres can read it, and none is needed.
//
//   H  the header          E  an entry (`dump-entry.ts`)     T  the beginning of a table's rows
//   D  rows, as COPY writes them     S  the positions of sequences     Z  the end
import { Readable } from 'node:stream'
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib'
import { BackupError } from '../backup-error.ts'
import { releaseMemory } from '../release-memory.ts'

export type FrameType = 'H' | 'E' | 'T' | 'D' | 'S' | 'Z'
export interface Frame {
  type: FrameType
  content: Buffer
}

const headBytes = 5
/** No frame of a backup is longer: rows are divided into parts, and definitions are bounded (`read-objects.ts`). */
const maxFrameBytes = 128 * 1024 * 1024
const rowsBytes = 1024 * 1024
/** The size of a result of the compression. Each one is a task for another thread. */
const compressedBytes = 1024 * 1024
const joinedBytes = 512 * 1024

export function jsonFrame(type: Exclude<FrameType, 'D'>, value: unknown): Frame {
  return { type, content: Buffer.from(JSON.stringify(value)) }
}

export function* rowFrames(rows: Buffer): Generator<Frame, undefined> {
  for (let from = 0; from < rows.length; from += rowsBytes) {
    yield { type: 'D', content: rows.subarray(from, from + rowsBytes) }
  }
}

/** Compresses frames. Nothing is read from `frames` before the result is read. */
export async function* writeFrames(frames: AsyncIterable<Frame>): AsyncGenerator<Uint8Array, undefined> {
  async function* bytes() {
    for await (const { type, content } of frames) {
      const head = Buffer.alloc(headBytes)
      head.write(type, 'latin1')
      head.writeUInt32BE(content.length, 1)
      yield head
      yield content
    }
  }
  const source = Readable.from(bytes(), { objectMode: false })
  const compress = createZstdCompress({
    chunkSize: compressedBytes,
    params: { [constants.ZSTD_c_compressionLevel]: 1 },
  })
  source.on('error', (cause) => compress.destroy(cause))
  compress.on('close', () => source.destroy())
  yield* source.pipe(compress) as AsyncIterable<Buffer>
}

/**
 * Reads frames. Rows are passed on as they arrive, in frames of other lengths than those that were written.
 * @throws BackupError DAMAGED when the last frame is missing
 */
export async function* readFrames(content: AsyncIterable<Uint8Array>): AsyncGenerator<Frame, undefined> {
  const source = Readable.from(joined(content), { objectMode: false })
  const decompress = createZstdDecompress({ chunkSize: compressedBytes })
  source.on('error', (cause) => decompress.destroy(cause))
  decompress.on('close', () => source.destroy())
  const head = Buffer.alloc(headBytes)
  let headLength = 0
  let rest = 0
  let gathered: Buffer[] = []
  for await (const chunk of source.pipe(decompress) as AsyncIterable<Buffer>) {
    for (let at = 0; at < chunk.length;) {
      if (headLength < headBytes) {
        const copied = chunk.copy(head, headLength, at)
        headLength += copied
        at += copied
        if (headLength < headBytes) break
        rest = head.readUInt32BE(1)
        if (rest > maxFrameBytes) throw damaged()
      }
      const type = head.toString('latin1', 0, 1) as FrameType
      const content = chunk.subarray(at, at + rest)
      at += content.length
      rest -= content.length
      if (type === 'D' && content.length > 0) yield { type, content }
      else gathered.push(content)
      if (rest > 0) continue
      if (type !== 'D') yield { type, content: Buffer.concat(gathered) }
      if (type === 'Z') return
      gathered = []
      headLength = 0
    }
  }
  throw damaged()
}

/** Joins chunks, because each one is a task for the thread that decompresses. */
async function* joined(content: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, undefined> {
  let chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of content) {
    chunks.push(chunk)
    size += chunk.length
    if (size < joinedBytes) continue
    const block = Buffer.concat(chunks)
    chunks.forEach(releaseMemory)
    yield block
    chunks = []
    size = 0
  }
  if (size > 0) yield Buffer.concat(chunks)
}

function damaged(): BackupError {
  return new BackupError('DAMAGED', 'The part "database" of the backup is incomplete.')
}
