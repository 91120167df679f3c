// Reads what a server says at the start of a session: that it lets the client in, and the key by which the session's
// queries can be cancelled. Pure.

const headerBytes = 5
/** The process id and, by protocol 3.2, a secret of up to 256 bytes. */
const maxKeyBytes = 4 + 256
/** A server that says more before it is ready for queries is not listened to any further. */
const maxBytes = 65_536

const authentication = 'R'.charCodeAt(0)
const authenticationOk = 0
const backendKeyData = 'K'.charCodeAt(0)
const readyForQuery = 'Z'.charCodeAt(0)

/** What a piece of the server's bytes has brought to its end. Each is said once in a session. */
export interface Reported {
  /** Bytes of this piece up to the end of AuthenticationOk. */
  admittedAt?: number
  /** In hexadecimal. */
  cancelKey?: string
}

export class SessionStart {
  #header = Buffer.alloc(headerBytes)
  #headerFilled = 0
  #type = 0
  /** Of the message at hand. */
  #left = 0
  /** What has come of its body, when it is one to be read. */
  #body: Buffer[] | undefined
  #isLetIn = false
  #polled = 0
  #isDone = false

  /** To be shown all pieces in order, however they are cut. */
  poll(chunk: Buffer): Reported {
    const reported: Reported = {}
    if (this.#isDone) return reported
    this.#polled += chunk.length
    for (let at = 0; at < chunk.length;) {
      if (this.#left === 0) {
        const taken = chunk.copy(this.#header, this.#headerFilled, at)
        at += taken
        this.#headerFilled += taken
        if (this.#headerFilled === headerBytes && !this.#begin()) break
      } else {
        const part = chunk.subarray(at, at + this.#left)
        at += part.length
        this.#left -= part.length
        this.#body?.push(Buffer.from(part))
        if (this.#left === 0 && this.#body !== undefined && !this.#end(Buffer.concat(this.#body), at, reported)) break
      }
    }
    this.#isDone ||= this.#polled > maxBytes
    return reported
  }

  /** @returns whether there is more to look at */
  #begin(): boolean {
    this.#type = this.#header.readUInt8(0)
    this.#left = this.#header.readUInt32BE(1) - 4
    this.#headerFilled = 0
    const isResponse = this.#type === authentication && this.#left === 4 && !this.#isLetIn
    const isKey = this.#type === backendKeyData && this.#left <= maxKeyBytes
    this.#body = isResponse || isKey ? [] : undefined
    this.#isDone = this.#type === readyForQuery || this.#left < 0
    return !this.#isDone
  }

  /** @returns as above */
  #end(body: Buffer, at: number, reported: Reported): boolean {
    if (this.#type === backendKeyData) {
      reported.cancelKey = body.toString('hex')
      this.#isDone = true
    } else if (body.readUInt32BE(0) === authenticationOk) {
      reported.admittedAt = at
      this.#isLetIn = true
    }
    return !this.#isDone
  }
}
