// Copies the bytes of one blob from an upload into an open file, and from an open file into memory.
import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { RuntimeError } from '../../errors.ts'
import type { StoredBlob } from './backend.ts'
import type { BytesInFlight } from './bytes-in-flight.ts'

/** Bytes of one upload that may wait for the disk. Beyond it, the upload stops reading from its sender. */
const writeAheadBytes = 1024 * 1024

/** Writes an upload to a file. Chunks that arrive during a write are gathered, and the next write takes all of them. */
export async function writeAll(
  handle: FileHandle,
  source: Readable,
  limit: number,
  inFlight: BytesInFlight,
): Promise<StoredBlob> {
  const hash = createHash('sha256')
  let size = 0
  let gathered: Buffer[] = []
  let held = 0
  let writing: Promise<void> | undefined
  const write = async () => {
    while (gathered.length > 0) {
      const buffers = gathered
      gathered = []
      await writeFully(handle, buffers)
      const bytes = bytesOf(buffers)
      if (source instanceof IncomingMessage) for (const buffer of buffers) release(buffer)
      held -= bytes
      inFlight.release(bytes)
    }
    writing = undefined
  }
  try {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > limit) throw new RuntimeError('FILE_TOO_LARGE', 'The object exceeded the maximum allowed size')
      await inFlight.take(chunk.length)
      held += chunk.length
      hash.update(chunk)
      gathered.push(chunk)
      writing ??= write()
      // An `await` of it below, or for the next chunk, reports its failure.
      writing.catch(() => undefined)
      if (held >= writeAheadBytes) await writing
    }
    await writing
    return { size, sha256: hash.digest('hex') }
  } finally {
    // The caller closes the file, which must not happen during a write.
    await writing?.catch(() => undefined)
    inFlight.release(held)
  }
}

/** Frees the memory of a request's chunk at once. Nothing else uses it, and the garbage collector would let 64 MB accumulate. */
function release({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}

function bytesOf(buffers: Buffer[]): number {
  return buffers.reduce((sum, buffer) => sum + buffer.length, 0)
}

/** Reads the first `size` bytes of a file. @throws RuntimeError FILE_MISSING if there are fewer */
export async function readFully(handle: FileHandle, size: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(size)
  for (let at = 0; at < size;) {
    const { bytesRead } = await handle.read(bytes, at, size - at, at)
    if (bytesRead === 0) throw new RuntimeError('FILE_MISSING', 'Object not found: its file is truncated')
    at += bytesRead
  }
  return bytes
}

/** Writes all buffers. The kernel may write fewer bytes than it is given. */
async function writeFully(handle: FileHandle, buffers: Buffer[]): Promise<void> {
  const wanted = bytesOf(buffers)
  const { bytesWritten } = await handle.writev(buffers)
  if (bytesWritten === wanted) return
  const rest = Buffer.concat(buffers).subarray(bytesWritten)
  for (let at = 0; at < rest.length;) at += (await handle.write(rest, at)).bytesWritten
}
