// `copy … from stdin` over a connection of node-postgres, with backpressure.
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import type pg from 'pg'
import { releaseMemory } from '../release-memory.ts'

/** The connection of a client, which `pg` passes to a query. */
interface CopyConnection {
  readonly stream: Duplex
  query(text: string): void
  endCopyFrom(): void
  sendCopyFail(message: string): void
}

class CopyInQuery implements pg.Submittable {
  readonly #text: string
  readonly #ended = Promise.withResolvers<undefined>()
  readonly begun = Promise.withResolvers<CopyConnection>()
  #connection: CopyConnection | undefined

  constructor(text: string) {
    this.#text = text
    this.ended.catch(() => undefined)
    this.begun.promise.catch(() => undefined)
  }

  get ended(): Promise<undefined> {
    return this.#ended.promise
  }

  submit(connection: pg.Connection): void {
    this.#connection = connection as unknown as CopyConnection
    this.#connection.query(this.#text)
  }

  handleCopyInResponse(): void {
    if (this.#connection !== undefined) this.begun.resolve(this.#connection)
  }

  handleRowDescription(): void {}
  handleDataRow(): void {}
  handleCommandComplete(): void {}

  handleError(error: Error): void {
    this.#ended.reject(error)
    this.begun.reject(error)
  }

  handleReadyForQuery(): void {
    this.#ended.resolve(undefined)
  }
}

/** Runs `copy … from stdin`. The memory of the chunks is freed. */
export async function copyIn(client: pg.Client, text: string, content: AsyncIterable<Uint8Array>): Promise<void> {
  const query = client.query(new CopyInQuery(text))
  const connection = await query.begun.promise
  const { stream } = connection
  try {
    for await (const chunk of content) {
      stream.cork()
      stream.write(headOf(chunk))
      const hasRoom = stream.write(chunk, () => releaseMemory(chunk))
      stream.uncork()
      if (!hasRoom) await Promise.race([once(stream, 'drain'), query.ended])
    }
    connection.endCopyFrom()
  } catch (cause) {
    connection.sendCopyFail('The source has ended.')
    await query.ended.catch(() => undefined)
    throw cause
  }
  await query.ended
}

/** Returns the head of a message CopyData. The driver would copy the content behind it. */
function headOf({ length }: Uint8Array): Buffer {
  const head = Buffer.alloc(5)
  head.write('d', 'latin1')
  head.writeUInt32BE(4 + length, 1)
  return head
}
