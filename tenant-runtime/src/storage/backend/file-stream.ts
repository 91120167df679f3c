// A part of an open file as a stream. When it is piped into a socket, two buffers take turns: a new buffer for each read
// would cost more time in the garbage collector than the rest of a download. Large buffers are used again for other files.
import type { FileHandle } from 'node:fs/promises'
import { Readable, type Writable } from 'node:stream'

const bufferBytes = 1024 * 1024
/** Size of a stream's buffers when there is no room for more large ones. */
const smallBufferBytes = 64 * 1024
/** The number of large buffers that are kept while no stream uses them. */
const maxIdleBuffers = 16

/** Bounds the large buffers of all streams together, and keeps some for the next streams. */
export class BufferRoom {
  #free: number
  readonly #idle: Buffer[] = []

  /** @param bytes the size of all buffers that are taken at a time */
  constructor(bytes: number) {
    this.#free = bytes
  }

  /** Takes buffers of `bufferBytes`; undefined if that exceeds the bound. */
  take(count: number): Buffer[] | undefined {
    if (count * bufferBytes > this.#free) return undefined
    this.#free -= count * bufferBytes
    return Array.from({ length: count }, () => this.#idle.pop() ?? Buffer.allocUnsafeSlow(bufferBytes))
  }

  release(count: number): void {
    this.#free += count * bufferBytes
  }

  /** Accepts a buffer that nothing uses any more. */
  keep(buffer: Buffer): void {
    if (this.#idle.length < maxIdleBuffers) this.#idle.push(buffer)
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
    const large = this.#takeLarge()
    const free = large?.slice() ?? this.#smallBuffers()
    const isOver = () => this.destroyed || this.#remaining === 0
    try {
      while (!isOver()) {
        const buffer = free.pop()
        if (buffer === undefined) {
          await new Promise<void>((resolve) => (this.#wake = resolve))
          continue
        }
        const chunk = await this.#fill(buffer)
        if (chunk.length === 0) throw new Error('The file is shorter than its row states.')
        sink.write(chunk, () => {
          if (large !== undefined && isOver()) this.#room.keep(buffer)
          else free.push(buffer)
          this.#wake?.()
        })
      }
      if (this.destroyed) return
      sink.end()
      this.push(null)
      this.resume()
    } finally {
      if (large !== undefined) {
        this.#room.release(large.length)
        for (const buffer of free) this.#room.keep(buffer)
      }
    }
  }

  /** Takes large buffers for a part that is not small, if there is room. */
  #takeLarge(): Buffer[] | undefined {
    return this.#remaining > smallBufferBytes ? this.#room.take(this.#countOf(bufferBytes)) : undefined
  }

  #smallBuffers(): Buffer[] {
    const bytes = Math.min(smallBufferBytes, this.#remaining)
    return Array.from({ length: this.#countOf(smallBufferBytes) }, () => Buffer.allocUnsafeSlow(bytes))
  }

  /** Returns the number of buffers of this size: one if the part fits into it, otherwise two that take turns. */
  #countOf(bytes: number): number {
    return this.#remaining > bytes ? 2 : 1
  }

  /** Reads as many bytes as the buffer holds and the part has. @returns no bytes at the end of the file */
  async #fill(buffer: Buffer): Promise<Buffer> {
    const { bytesRead } = await this.#handle.read(buffer, 0, Math.min(buffer.length, this.#remaining), this.#position)
    this.#position += bytesRead
    return buffer.subarray(0, bytesRead)
  }
}
