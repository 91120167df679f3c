// A cursor over WebAssembly's binary format: bytes, LEB128 numbers, names. Every read is checked against the end.
import { RuntimeError } from '../../errors.ts'

export class Reader {
  readonly bytes: Uint8Array
  readonly #end: number
  /** Offset of the bytes in the file, for messages. */
  readonly #base: number
  at = 0

  constructor(bytes: Uint8Array, base = 0) {
    this.bytes = bytes
    this.#end = bytes.length
    this.#base = base
  }

  get isAtEnd(): boolean {
    return this.at >= this.#end
  }

  byte(): number {
    const value = this.bytes[this.at]
    if (value === undefined) throw this.malformed('ends too early')
    this.at++
    return value
  }

  /** Reads an unsigned number of at most 32 bits. */
  u32(): number {
    let value = 0
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.byte()
      value += (byte & 0x7f) * 2 ** shift
      if ((byte & 0x80) === 0) {
        if (value > 0xffff_ffff) break
        return value
      }
    }
    throw this.malformed('contains a number beyond 32 bits')
  }

  name(): string {
    const bytes = this.take(this.u32())
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    } catch {
      throw this.malformed('contains a name that is not UTF-8')
    }
  }

  take(length: number): Uint8Array {
    if (this.at + length > this.#end) throw this.malformed('ends too early')
    const taken = this.bytes.subarray(this.at, this.at + length)
    this.at += length
    return taken
  }

  /** Returns a reader of the next `length` bytes. */
  sub(length: number): Reader {
    const base = this.#base + this.at
    return new Reader(this.take(length), base)
  }

  /** Creates an error for the current position. */
  malformed(what: string): RuntimeError {
    return new RuntimeError('INVALID_WASM', `Part "wasm": The module ${what} (byte ${this.#base + this.at}).`)
  }
}

export function u32Bytes(value: number): number[] {
  const bytes: number[] = []
  do {
    const rest = Math.floor(value / 128)
    bytes.push((value % 128) | (rest > 0 ? 0x80 : 0))
    value = rest
  } while (value > 0)
  return bytes
}
