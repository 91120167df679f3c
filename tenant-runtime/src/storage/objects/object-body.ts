// The body of a response with an object's bytes: all of them, one range, or several as `multipart/byteranges`.
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import type { OpenBlob } from '../backend/backend.ts'
import type { Part } from './conditional.ts'
import type { StoredObject } from './object.ts'

interface ObjectBody {
  status: 200 | 206
  headers: Record<string, string>
  /** Length in bytes. */
  length: number
  /** Streams the body and closes the blob at its end. */
  stream(blob: OpenBlob): Readable
}

export function wholeBody(size: number): ObjectBody {
  return { status: 200, headers: {}, length: size, stream: (blob) => blob.stream(0, size - 1) }
}

export function partialBody(parts: readonly [Part, ...Part[]], { contentType, size }: StoredObject): ObjectBody {
  const [{ start, end }] = parts
  if (parts.length === 1) {
    return {
      status: 206,
      headers: { 'content-range': `bytes ${start}-${end}/${size}` },
      length: end - start + 1,
      stream: (blob) => blob.stream(start, end),
    }
  }
  const boundary = randomUUID()
  const chunks = parts.map((part) => ({
    ...part,
    head: Buffer.from(
      `\r\n--${boundary}\r\ncontent-type: ${contentType}\r\ncontent-range: bytes ${part.start}-${part.end}/${size}\r\n\r\n`,
    ),
  }))
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`)
  const bytes = async function* (blob: OpenBlob): AsyncGenerator<Buffer> {
    try {
      for (const { start, end, head } of chunks) {
        yield head
        yield* blob.read(start, end)
      }
      yield tail
    } finally {
      await blob.close()
    }
  }
  return {
    status: 206,
    headers: { 'content-type': `multipart/byteranges; boundary=${boundary}` },
    length: chunks.reduce((sum, { start, end, head }) => sum + head.length + end - start + 1, tail.length),
    stream: (blob) => Readable.from(bytes(blob), { objectMode: false }),
  }
}
