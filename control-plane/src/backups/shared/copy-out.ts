// `copy … to stdout` over a connection of node-postgres, with backpressure. The messages of rows do not pass through the driver,
// which creates an object for each row: their content is copied from the socket's chunks into blocks.
import type { Duplex } from 'node:stream'
import type pg from 'pg'
import { identifier } from '../../platform/identifiers.ts'
import { BackupError } from '../backup-error.ts'
import { releaseMemory } from '../release-memory.ts'
import type { DumpTable } from './dump-entry.ts'

/** The connection of a client, which `pg` passes to a query. */
interface CopyConnection {
  readonly stream: Duplex
  query(text: string): void
}

type ReceiveChunk = (chunk: Buffer) => void

const headBytes = 5
const blockBytes = 1024 * 1024
/** The number of blocks that wait to be read, above which the server must wait. */
const maxWaitingBlocks = 2
/** The maximum size of a row as text, which is held in memory. */
export const maxRowBytes = 64 * 1024 * 1024

const messageTypes = { row: 'd'.charCodeAt(0), done: 'c'.charCodeAt(0), error: 'E'.charCodeAt(0) }

class CopyOutQuery implements pg.Submittable {
  readonly #table: Pick<DumpTable, 'name' | 'columns'>
  #stream: Duplex | undefined
  /** The driver's own listeners, which receive all messages that are not rows. */
  #driver: ReceiveChunk[] = []
  readonly #head = Buffer.alloc(headBytes)
  #headLength = 0
  /** Bytes that are still to come of the message. */
  #rest = 0
  #isRow = false
  #block = Buffer.allocUnsafeSlow(blockBytes)
  #used = 0
  #rows = 0
  #reportedRows: number | undefined
  #blocks: Buffer[] = []
  #end: { error: Error | undefined } | undefined
  #moved = Promise.withResolvers<undefined>()

  constructor(table: Pick<DumpTable, 'name' | 'columns'>) {
    this.#table = table
  }

  submit(connection: pg.Connection): void {
    const copying = connection as unknown as CopyConnection
    const { stream } = copying
    this.#stream = stream
    this.#driver = stream.listeners('data') as ReceiveChunk[]
    stream.removeAllListeners('data')
    stream.on('data', this.#receive)
    const columns = this.#table.columns.map(identifier).join(', ')
    copying.query(`copy ${identifier(this.#table.name)} (${columns}) to stdout`)
  }

  handleRowDescription(): void {}
  handleDataRow(): void {}

  handleCommandComplete({ text }: { text: string }): void {
    this.#reportedRows = Number(/^COPY (\d+)$/.exec(text)?.[1])
  }

  handleError(error: Error): void {
    this.#finish(error)
  }

  handleReadyForQuery(): void {
    this.#finish(this.#reportedRows === this.#rows ? undefined : this.#lostRows())
  }

  /** Yields blocks of whole rows. */
  async *blocks(): AsyncGenerator<Buffer, undefined> {
    for (;;) {
      const block = this.#blocks.shift()
      if (block !== undefined) {
        if (this.#blocks.length < maxWaitingBlocks) this.#stream?.resume()
        yield block
      } else if (this.#end === undefined) await this.#moved.promise
      else if (this.#end.error === undefined) return
      else throw this.#end.error
    }
  }

  readonly #receive: ReceiveChunk = (chunk) => {
    let isShared = false
    let at = 0
    while (at < chunk.length) {
      if (this.#rest === 0) {
        const taken = chunk.copy(this.#head, this.#headLength, at, at + headBytes - this.#headLength)
        at += taken
        this.#headLength += taken
        if (this.#headLength < headBytes) break
        this.#headLength = 0
        if (!this.#beginMessage()) {
          this.#detach(chunk.subarray(at))
          return
        }
      } else {
        const end = Math.min(chunk.length, at + this.#rest)
        if (this.#isRow) this.#used += chunk.copy(this.#block, this.#used, at, end)
        else {
          this.#toDriver(chunk.subarray(at, end))
          // The driver may keep it.
          isShared = true
        }
        this.#rest -= end - at
        at = end
      }
    }
    if (!isShared) releaseMemory(chunk)
  }

  /** @returns false when the message is the driver's, and all after it */
  #beginMessage(): boolean {
    const type = this.#head[0]
    this.#rest = this.#head.readUInt32BE(1) - 4
    this.#isRow = type === messageTypes.row
    if (type === messageTypes.done || type === messageTypes.error) return false
    if (!this.#isRow) this.#toDriver(Buffer.from(this.#head))
    else if (this.#rest > maxRowBytes) this.#finish(this.#largeRow(this.#rest))
    else {
      this.#rows++
      if (this.#used + this.#rest > this.#block.length) {
        this.#flush()
        this.#block = Buffer.allocUnsafeSlow(Math.max(blockBytes, this.#rest))
      }
    }
    return true
  }

  #flush(): void {
    if (this.#used === 0) return
    // A block of the exact size has no other user, so that its memory can be freed.
    this.#blocks.push(Buffer.from(this.#block.buffer.transfer(this.#used)))
    this.#used = 0
    if (this.#blocks.length >= maxWaitingBlocks) this.#stream?.pause()
    this.#wake()
  }

  /** Returns the connection to the driver, with the message whose head was read and what follows it. */
  #detach(rest: Buffer): void {
    this.#flush()
    this.#stream?.off('data', this.#receive)
    for (const listener of this.#driver) this.#stream?.on('data', listener)
    this.#toDriver(Buffer.concat([this.#head, rest]))
  }

  #toDriver(bytes: Buffer): void {
    for (const listener of this.#driver) listener(bytes)
  }

  #finish(error: Error | undefined): void {
    this.#end ??= { error }
    this.#wake()
  }

  #wake(): void {
    this.#moved.resolve(undefined)
    this.#moved = Promise.withResolvers()
  }

  #largeRow(bytes: number): BackupError {
    return new BackupError(
      'FAILED',
      `A row of the table "${this.#table.name}" has ${bytes} bytes. Allowed: ${maxRowBytes}.`,
    )
  }

  #lostRows(): BackupError {
    return new BackupError('FAILED', `Not all rows of the table "${this.#table.name}" were received.`)
  }
}

/**
 * Yields a table's rows in blocks, as `copy … to stdout` writes them. Each block consists of whole rows, and each row ends with a
 * line feed. Everything must be read to its end before the connection is used again; after an error, it must be closed.
 * @throws BackupError for a row that is too large
 */
export function copyOut(
  client: pg.Client,
  table: Pick<DumpTable, 'name' | 'columns'>,
): AsyncGenerator<Buffer, undefined> {
  return client.query(new CopyOutQuery(table)).blocks()
}
