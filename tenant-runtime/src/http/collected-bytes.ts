// The chunks of a body that is collected in memory. A chunk occupies far more memory than a small one has bytes, and the sender
// chooses its size, so small chunks are copied together.

/** The size in bytes from which a chunk is not copied, and the number of smaller ones that are kept at a time. */
const largeBytes = 4_096
const maxSmall = 256

export class CollectedBytes {
  readonly #chunks: Buffer[] = []
  #small: Buffer[] = []
  #length = 0

  /** The number of bytes of all chunks. */
  get length(): number {
    return this.#length
  }

  add(chunk: Buffer): void {
    this.#length += chunk.length
    const isLarge = chunk.length >= largeBytes
    if (!isLarge) this.#small.push(chunk)
    if (isLarge || this.#small.length === maxSmall) this.#copySmall()
    if (isLarge) this.#chunks.push(chunk)
  }

  /** Returns all bytes. A body of one chunk is not copied. */
  whole(): Buffer {
    const chunks = [...this.#chunks, ...this.#small]
    const [first] = chunks
    return first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks, this.#length)
  }

  #copySmall(): void {
    if (this.#small.length === 0) return
    this.#chunks.push(Buffer.concat(this.#small))
    this.#small = []
  }
}
