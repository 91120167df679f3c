// The bytes of one blob, from an upload into an open file and from an open file into memory.
import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { RuntimeError } from '../../errors.ts'
import type { StoredBlob } from './backend.ts'
import type { BytesInFlight } from './bytes-in-flight.ts'

/** So much of one upload may wait for the disk; then nothing more is taken from its sender. */
const writeAheadBytes = 1024 * 1024

/** Writes an upload. One chunk is written while the next ones come; what comes meanwhile is written at once. */
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
      inFlight.give(bytes)
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
      // Its failure is met below, or by the next chunk.
      writing.catch(() => undefined)
      if (held >= writeAheadBytes) await writing
    }
    await writing
    return { size, sha256: hash.digest('hex') }
  } finally {
    // The file must not be closed under it.
    await writing?.catch(() => undefined)
    inFlight.give(held)
  }
}

/**
 * Frees the memory of a request's piece, which nobody else has, at once; the garbage collector would let 64 MB of them
 * come together.
 */
function release({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}

function bytesOf(buffers: Buffer[]): number {
  return buffers.reduce((sum, buffer) => sum + buffer.length, 0)
}

export async function readFully(handle: FileHandle, size: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(size)
  for (let at = 0; at < size;) {
    const { bytesRead } = await handle.read(bytes, at, size - at, at)
    if (bytesRead === 0) throw new RuntimeError('FILE_MISSING', 'Object not found: its file was cut short')
    at += bytesRead
  }
  return bytes
}

/** The kernel may take less than it was given. */
async function writeFully(handle: FileHandle, buffers: Buffer[]): Promise<void> {
  const wanted = bytesOf(buffers)
  const { bytesWritten } = await handle.writev(buffers)
  if (bytesWritten === wanted) return
  const rest = Buffer.concat(buffers).subarray(bytesWritten)
  for (let at = 0; at < rest.length;) at += (await handle.write(rest, at)).bytesWritten
}
