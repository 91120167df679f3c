// Decodes the Engine's multiplexed standard output and standard error: chunks with a header of 8 bytes each (stream,
// three zeros, length as big-endian 32 bits).
import { EngineError } from '../index.ts'

export interface Chunk {
  stream: 'stdout' | 'stderr'
  bytes: Uint8Array
  /** Whether this chunk ends a frame. In logs, a frame is one line or a part of a very long one. */
  isLast: boolean
}

const headerLength = 8

/** Yields each part of a frame at once, so that memory does not depend on the length in a header. @throws EngineError */
export async function* demultiplex(source: AsyncIterable<Uint8Array>): AsyncGenerator<Chunk, undefined> {
  const header = Buffer.alloc(headerLength)
  let headerBytes = 0
  let missing = 0
  for await (const chunk of source) {
    let at = 0
    while (at < chunk.length) {
      if (missing === 0) {
        const taken = Math.min(headerLength - headerBytes, chunk.length - at)
        header.set(chunk.subarray(at, at + taken), headerBytes)
        headerBytes += taken
        at += taken
        if (headerBytes < headerLength) break
        missing = header.readUInt32BE(4)
        if (missing === 0) headerBytes = 0
        continue
      }
      const bytes = chunk.subarray(at, at + missing)
      at += bytes.length
      missing -= bytes.length
      if (missing === 0) headerBytes = 0
      yield { stream: streamOf(header), bytes, isLast: missing === 0 }
    }
  }
  if (headerBytes > 0)
    throw new EngineError('ENGINE_UNREACHABLE', 'The Docker Engine ended the connection within a frame.')
}

function streamOf(header: Buffer): Chunk['stream'] {
  switch (header[0]) {
    case 0:
    case 1:
      return 'stdout'
    case 2:
      return 'stderr'
    default:
      throw new EngineError('ENGINE_FAILED', `The Docker Engine sent a frame of the unknown stream ${header[0] ?? ''}.`)
  }
}
