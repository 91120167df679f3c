// Reads a server's messages at the start of a session: that it admits the client, and the key by which the session's
// queries can be cancelled. Pure.

const headerBytes = 5
/** The maximum size of a cancel key: the process ID and, in protocol 3.2, a secret of up to 256 bytes. */
const maxKeyBytes = 4 + 256
/** The maximum number of bytes that are read before the server is ready for queries. */
const maxBytes = 65_536

const authentication = 'R'.charCodeAt(0)
const authenticationOk = 0
const backendKeyData = 'K'.charCodeAt(0)
const readyForQuery = 'Z'.charCodeAt(0)

/** The messages that a chunk of the server's bytes completes. Each occurs once in a session. */
export interface SessionStartEvents {
  /** The bytes of this chunk up to the end of AuthenticationOk. */
  admittedAt?: number
  /** The key in hexadecimal. */
  cancelKey?: string
}

export class SessionStart {
  #header = Buffer.alloc(headerBytes)
  #headerFilled = 0
  #type = 0
  /** The bytes of the current message that are still to come. */
  #remaining = 0
  /** The received bytes of the current message's body, when it is one to be read. */
  #body: Buffer[] | undefined
  #isAdmitted = false
  #readBytes = 0
  #isDone = false

  /** Reads the next chunk of the server's bytes. */
  read(chunk: Buffer): SessionStartEvents {
    const events: SessionStartEvents = {}
    if (this.#isDone) return events
    this.#readBytes += chunk.length
    for (let at = 0; at < chunk.length;) {
      if (this.#remaining === 0) {
        const taken = chunk.copy(this.#header, this.#headerFilled, at)
        at += taken
        this.#headerFilled += taken
        if (this.#headerFilled === headerBytes && !this.#begin()) break
      } else {
        const part = chunk.subarray(at, at + this.#remaining)
        at += part.length
        this.#remaining -= part.length
        this.#body?.push(Buffer.from(part))
        if (this.#remaining === 0 && this.#body !== undefined && !this.#end(Buffer.concat(this.#body), at, events))
          break
      }
    }
    this.#isDone ||= this.#readBytes > maxBytes
    return events
  }

  /**
   * Begins a message.
   * @returns whether there is more to read
   */
  #begin(): boolean {
    this.#type = this.#header.readUInt8(0)
    this.#remaining = this.#header.readUInt32BE(1) - 4
    this.#headerFilled = 0
    const isResponse = this.#type === authentication && this.#remaining === 4 && !this.#isAdmitted
    const isKey = this.#type === backendKeyData && this.#remaining <= maxKeyBytes
    this.#body = isResponse || isKey ? [] : undefined
    this.#isDone = this.#type === readyForQuery || this.#remaining < 0
    return !this.#isDone
  }

  /**
   * Ends a message.
   * @returns whether there is more to read
   */
  #end(body: Buffer, at: number, events: SessionStartEvents): boolean {
    if (this.#type === backendKeyData) {
      events.cancelKey = body.toString('hex')
      this.#isDone = true
    } else if (body.readUInt32BE(0) === authenticationOk) {
      events.admittedAt = at
      this.#isAdmitted = true
    }
    return !this.#isDone
  }
}
