// Finds, in what a server says at the start of a session, the key by which the session's queries can be cancelled. Pure.

const headerBytes = 5
/** The process id and, by protocol 3.2, a secret of up to 256 bytes. */
const longestKeyBytes = 4 + 256
/** A server that says more before it is ready for queries is not listened to any further. */
const mostBytes = 65_536

const backendKeyData = 'K'.charCodeAt(0)
const readyForQuery = 'Z'.charCodeAt(0)

export class CancelKeyFinder {
  #header = Buffer.alloc(headerBytes)
  #headerFilled = 0
  /** Of the message at hand. */
  #left = 0
  #key: Buffer[] | undefined
  #looked = 0
  #isDone = false

  /**
   * To be shown all pieces in order, however they are cut.
   * @returns the key in hexadecimal, once, when this piece completes it
   */
  look(piece: Buffer): string | undefined {
    if (this.#isDone) return undefined
    this.#looked += piece.length
    for (let at = 0; at < piece.length; ) {
      if (this.#left === 0) {
        const taken = piece.copy(this.#header, this.#headerFilled, at)
        at += taken
        this.#headerFilled += taken
        if (this.#headerFilled < headerBytes) break
        if (!this.#begin()) break
      } else {
        const part = piece.subarray(at, at + this.#left)
        at += part.length
        this.#left -= part.length
        this.#key?.push(Buffer.from(part))
        if (this.#left === 0 && this.#key !== undefined) {
          this.#isDone = true
          return Buffer.concat(this.#key).toString('hex')
        }
      }
    }
    this.#isDone ||= this.#looked > mostBytes
    return undefined
  }

  /** @returns whether there is more to look at */
  #begin(): boolean {
    const type = this.#header.readUInt8(0)
    this.#left = this.#header.readUInt32BE(1) - 4
    this.#headerFilled = 0
    if (type === backendKeyData && this.#left <= longestKeyBytes) this.#key = []
    this.#isDone = type === readyForQuery || this.#left < 0
    return !this.#isDone
  }
}
