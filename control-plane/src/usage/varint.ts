// Writes whole numbers in as few bytes as they need: seven bits a byte, the lowest first; the last byte is below 128.
// Pure.

const maxSafeInteger = BigInt(Number.MAX_SAFE_INTEGER)

/**
 * Appends a number.
 * @param value not below zero
 */
export function writeVarint(into: number[], value: bigint | number): void {
  let rest = value
  if (typeof rest === 'bigint') {
    while (rest > maxSafeInteger) {
      into.push(Number(rest & 127n) | 128)
      rest >>= 7n
    }
    rest = Number(rest)
  }
  while (rest >= 128) {
    into.push((rest % 128) | 128)
    rest = Math.floor(rest / 128)
  }
  into.push(rest)
}

/** Encodes the sign and the size in one number: 0, -1, 1 and -2 are 0, 1, 2 and 3. */
export function zigzag(value: bigint): bigint {
  return value < 0n ? -value * 2n - 1n : value * 2n
}

export function unzigzag(value: bigint): bigint {
  return value % 2n === 0n ? value / 2n : -(value + 1n) / 2n
}

/** Reads numbers one after another. */
export class ByteReader {
  readonly #bytes: Uint8Array
  #at: number

  constructor(bytes: Uint8Array, at = 0) {
    this.#bytes = bytes
    this.#at = at
  }

  get at(): number {
    return this.#at
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length
  }

  /**
   * Reads a number.
   * @throws Error where the bytes end within it
   */
  varint(): bigint {
    let low = 0
    let scale = 1
    // Seven bytes of seven bits are exact in a number.
    for (let taken = 0; taken < 7; taken++) {
      const byte = this.#byte()
      low += (byte & 127) * scale
      if (byte < 128) return BigInt(low)
      scale *= 128
    }
    let value = BigInt(low)
    for (let shift = 49n; ; shift += 7n) {
      const byte = this.#byte()
      value += BigInt(byte & 127) << shift
      if (byte < 128) return value
    }
  }

  /** Reads a number that is always small enough for a JavaScript number. */
  small(): number {
    return Number(this.varint())
  }

  text(length: number): string {
    const text = Buffer.from(this.#bytes.subarray(this.#at, this.#at + length)).toString('utf8')
    this.#at += length
    return text
  }

  #byte(): number {
    const byte = this.#bytes[this.#at++]
    if (byte === undefined) throw new Error('The packed usage ends within a number.')
    return byte
  }
}
