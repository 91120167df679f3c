// The Engine's way to send standard output and standard error over one connection: pieces, each after a header of 8 bytes
// (stream, three zeros, length as big-endian 32 bits).
import { EngineError } from '../index.ts'

export interface Chunk {
  stream: 'stdout' | 'stderr'
  bytes: Uint8Array
  /** It ends what the Engine wrote as one: for logs, one line or a part of a very long one. */
  last: boolean
}

const headerLength = 8

/** Passes on what came of a frame at once: memory does not depend on what a header promises. @throws EngineError */
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
      yield { stream: streamOf(header), bytes, last: missing === 0 }
    }
  }
  if (headerBytes > 0) throw new EngineError('ENGINE_UNREACHABLE', 'the Docker Engine broke off within a frame')
}

function streamOf(header: Buffer): Chunk['stream'] {
  switch (header[0]) {
    case 0:
    case 1:
      return 'stdout'
    case 2:
      return 'stderr'
    default:
      throw new EngineError('ENGINE_FAILED', `the Docker Engine sent a frame of an unknown stream, ${header[0] ?? ''}`)
  }
}
