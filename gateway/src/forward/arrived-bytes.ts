// What arrives on a connection with a request's body. The sizes and extensions of chunks are a part of it that the parser reads
// and drops, so a body of few bytes can take as long to read as a large one (RFC 9112, section 7.1.1).
import type { Socket } from 'node:net'
import { BodyChunks } from '@tenantry/contract'

/** The bytes by which the framing of a body may exceed the body itself. One read of the connection has up to 64 KB. */
const maxExcess = 128 * 1024

export class ArrivedBytes {
  readonly #socket: Pick<Socket, 'bytesRead'>
  readonly #chunks = new BodyChunks()
  #before: number
  /** The bytes of the framing, less those of the body. */
  #excess = 0

  constructor(socket: Pick<Socket, 'bytesRead'>) {
    this.#socket = socket
    this.#before = socket.bytesRead
  }

  /** Whether the sizes and extensions of the chunks are far more bytes than the body. */
  get isMostlyFraming(): boolean {
    return this.#excess > maxExcess
  }

  /**
   * Notes a chunk of the body. All that the connection has read at once counts with the first chunk in it.
   * @returns the bytes that have arrived since the last chunk, and those to add to the tenant's turn now
   */
  chunk(bytes: number): { arrived: number; due: number } {
    const now = this.#socket.bytesRead
    const arrived = now - this.#before
    this.#before = now
    this.#excess += arrived - 2 * bytes
    return { arrived, due: this.#chunks.add(arrived) }
  }
}
