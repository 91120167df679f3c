// A part of an open file as a stream. When it is piped into a socket, two buffers take turns: a new buffer for each read
// would cost more time in the garbage collector than the rest of a download.
import type { FileHandle } from 'node:fs/promises'
import { Readable, type Writable } from 'node:stream'

const bufferBytes = 1024 * 1024
/** Size of a stream's buffers when there is no room for more large ones. */
const smallBufferBytes = 64 * 1024

/** Bounds the large buffers of all streams together. */
export class BufferRoom {
  #free: number

  constructor(bytes: number) {
    this.#free = bytes
  }

  take(bytes: number): boolean {
    if (bytes > this.#free) return false
    this.#free -= bytes
    return true
  }

  release(bytes: number): void {
    this.#free += bytes
  }
}

/** A stream of a file's bytes. It closes the file when it ends or is destroyed. */
export class FileStream extends Readable {
  readonly #handle: FileHandle
  readonly #end: number
  readonly #room: BufferRoom
  #position: number
  #wake: (() => void) | undefined

  /** @param start offset of the first byte @param end offset of the last byte */
  constructor(handle: FileHandle, start: number, end: number, room: BufferRoom) {
    super({ highWaterMark: smallBufferBytes })
    this.#handle = handle
    this.#position = start
    this.#end = end
    this.#room = room
  }

  override pipe<Sink extends NodeJS.WritableStream>(sink: Sink): Sink {
    this.#pour(sink as unknown as Writable).catch((error: unknown) =>
      this.destroy(error instanceof Error ? error : new Error('A file could not be read.', { cause: error })),
    )
    return sink
  }

  /** Reads into a new buffer each time, because an iterating reader may keep the chunks. */
  override _read(size: number): void {
    this.#fill(Buffer.allocUnsafe(Math.min(size, this.#remaining))).then(
      (chunk) => this.push(chunk.length === 0 ? null : chunk),
      (error: unknown) => this.destroy(error as Error),
    )
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#wake?.()
    this.#handle.close().then(() => done(error), done)
  }

  get #remaining(): number {
    return this.#end - this.#position + 1
  }

  async #pour(sink: Writable): Promise<void> {
    const wanted = Math.min(bufferBytes, this.#remaining)
    const large = this.#room.take(2 * wanted)
    const bytes = large ? wanted : Math.min(smallBufferBytes, wanted)
    try {
      const free = [Buffer.allocUnsafeSlow(bytes), Buffer.allocUnsafeSlow(bytes)]
      while (this.#remaining > 0 && !this.destroyed) {
        const buffer = free.pop()
        if (buffer === undefined) {
          await new Promise<void>((resolve) => (this.#wake = resolve))
          continue
        }
        const chunk = await this.#fill(buffer)
        if (chunk.length === 0) throw new Error('The file is shorter than its row states.')
        sink.write(chunk, () => {
          free.push(buffer)
          this.#wake?.()
        })
      }
      if (this.destroyed) return
      sink.end()
      this.push(null)
      this.resume()
    } finally {
      if (large) this.#room.release(2 * wanted)
    }
  }

  /** Reads as many bytes as the buffer holds and the part has. @returns no bytes at the end of the file */
  async #fill(buffer: Buffer): Promise<Buffer> {
    const { bytesRead } = await this.#handle.read(buffer, 0, Math.min(buffer.length, this.#remaining), this.#position)
    this.#position += bytesRead
    return buffer.subarray(0, bytesRead)
  }
}
