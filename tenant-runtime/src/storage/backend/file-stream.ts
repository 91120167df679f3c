// A part of an open file as a stream. Piped into a socket it goes through two buffers that take turns: a fresh one for each
// read would keep the garbage collector busier than all the rest of a download.
import type { FileHandle } from 'node:fs/promises'
import { Readable, type Writable } from 'node:stream'

const bufferBytes = 1024 * 1024
/** For who comes when there is no room for more large ones. */
const smallBufferBytes = 64 * 1024

/** Room for the large buffers of all streams together. */
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

  give(bytes: number): void {
    this.#free += bytes
  }
}

/** Closes the file when it ends or is destroyed. */
export class FileStream extends Readable {
  readonly #handle: FileHandle
  readonly #end: number
  readonly #room: BufferRoom
  #at: number
  #wake: (() => void) | undefined

  /** `start` and `end` are both included. */
  constructor(handle: FileHandle, start: number, end: number, room: BufferRoom) {
    super({ highWaterMark: smallBufferBytes })
    this.#handle = handle
    this.#at = start
    this.#end = end
    this.#room = room
  }

  override pipe<Sink extends NodeJS.WritableStream>(sink: Sink): Sink {
    this.#pour(sink as unknown as Writable).catch((error: unknown) =>
      this.destroy(error instanceof Error ? error : new Error('a file could not be read', { cause: error })),
    )
    return sink
  }

  /** Whoever iterates keeps what is read, so that each piece is an own one. */
  override _read(size: number): void {
    this.#fill(Buffer.allocUnsafe(Math.min(size, this.#left))).then(
      (chunk) => this.push(chunk.length === 0 ? null : chunk),
      (error: unknown) => this.destroy(error as Error),
    )
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#wake?.()
    this.#handle.close().then(() => done(error), done)
  }

  get #left(): number {
    return this.#end - this.#at + 1
  }

  async #pour(sink: Writable): Promise<void> {
    const wanted = Math.min(bufferBytes, this.#left)
    const large = this.#room.take(2 * wanted)
    const bytes = large ? wanted : Math.min(smallBufferBytes, wanted)
    try {
      const free = [Buffer.allocUnsafeSlow(bytes), Buffer.allocUnsafeSlow(bytes)]
      while (this.#left > 0 && !this.destroyed) {
        const buffer = free.pop()
        if (buffer === undefined) {
          await new Promise<void>((resolve) => (this.#wake = resolve))
          continue
        }
        const chunk = await this.#fill(buffer)
        if (chunk.length === 0) throw new Error('the file was cut short')
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
      if (large) this.#room.give(2 * wanted)
    }
  }

  /** As much as fits and there is. */
  async #fill(buffer: Buffer): Promise<Buffer> {
    const { bytesRead } = await this.#handle.read(buffer, 0, Math.min(buffer.length, this.#left), this.#at)
    this.#at += bytesRead
    return buffer.subarray(0, bytesRead)
  }
}
