// Splits output into lines within bounds: at most one line of limited length is in memory.

/** One line of a program's output. */
export interface SplitLine {
  /** The line without its newline. */
  bytes: Buffer
  /** Whether the line is longer, and its rest is omitted. */
  isCut: boolean
}

const newline = 0x0a
const firstBytes = 1024

/** Splits chunks into lines. A line of more than `maxBytes` is cut as soon as that many bytes have arrived. */
export class LineSplitter {
  readonly #maxBytes: number
  #pending = Buffer.alloc(0)
  #length = 0
  #isCut = false

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Returns lines that the chunk ends, or makes too long. */
  *push(chunk: Uint8Array): Generator<SplitLine, undefined> {
    for (let from = 0; from < chunk.length;) {
      const end = chunk.indexOf(newline, from)
      const part = chunk.subarray(from, end === -1 ? chunk.length : end)
      if (!this.#isCut) {
        const room = this.#maxBytes - this.#length
        this.#append(part.subarray(0, room))
        if (part.length > room) {
          this.#isCut = true
          yield { bytes: this.#take(), isCut: true }
        }
      }
      if (end === -1) return
      if (!this.#isCut) yield { bytes: this.#take(), isCut: false }
      this.#isCut = false
      from = end + 1
    }
  }

  /** Returns the last line if it has no newline. */
  end(): SplitLine | undefined {
    return this.#length === 0 ? undefined : { bytes: this.#take(), isCut: false }
  }

  #append(part: Uint8Array): void {
    const length = this.#length + part.length
    if (length > this.#pending.length) {
      const larger = Buffer.allocUnsafe(Math.min(this.#maxBytes, Math.max(firstBytes, 2 * length)))
      larger.set(this.#pending.subarray(0, this.#length))
      this.#pending = larger
    }
    this.#pending.set(part, this.#length)
    this.#length = length
  }

  #take(): Buffer {
    const bytes = Buffer.from(this.#pending.subarray(0, this.#length))
    this.#length = 0
    return bytes
  }
}

/**
 * Yields the lines of a text without their newlines. A last line without a newline is included.
 * @throws Error of `tooLong` for a line of more than `maxBytes`
 */
export async function* linesOf(
  source: AsyncIterable<Uint8Array>,
  maxBytes: number,
  tooLong: () => Error = () => new Error(`A line is longer than ${maxBytes} bytes.`),
): AsyncGenerator<string, undefined> {
  const splitter = new LineSplitter(maxBytes)
  for await (const chunk of source) {
    for (const { bytes, isCut } of splitter.push(chunk)) {
      if (isCut) throw tooLong()
      yield bytes.toString()
    }
  }
  const last = splitter.end()
  if (last !== undefined) yield last.bytes.toString()
}
