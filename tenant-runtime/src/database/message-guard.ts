// Limits what is buffered of messages from Postgres: the size of one, and, of rows, the memory of all results together. A
// row becomes a string, and a string beyond V8's limit, or the memory of many, would end the runtime for all tenants.
import type { Duplex } from 'node:stream'
import type pg from 'pg'

/** The maximum bytes of one message, and of all rows of a round trip that are held in memory together. */
export const maxMessageLength = 64 * 1024 * 1024
/** The bytes of a message's type and length. */
const headBytes = 5

export class MessageTooLongError extends Error {}

/** The type of a message with a row. */
const dataRow = 'D'.charCodeAt(0)

/**
 * Called with the size of a row before any of it is buffered. While a promise that it returns is pending, nothing is read
 * of the connection. A rejection ends the connection.
 */
export type RowListener = (bytes: number) => Promise<void> | undefined

/** Limits the messages of one connection. */
export interface MessageGuard {
  /** The listener of the round trip in progress. */
  onRow: RowListener | undefined
}

/** Ends a connection on which a message beyond the limit begins, before any of it is buffered, and reports rows. */
export function guardMessages(client: pg.Client, guard: MessageGuard): void {
  // node-postgres has no public way to its socket.
  const { stream } = (client as unknown as { connection: { stream: Duplex } }).connection
  const head = Buffer.alloc(headBytes)
  let headFilled = 0
  let remaining = 0
  stream.prependListener('data', (chunk: Buffer) => {
    for (let at = 0; at < chunk.length;) {
      if (remaining > 0) {
        const step = Math.min(remaining, chunk.length - at)
        remaining -= step
        at += step
        continue
      }
      const taken = chunk.copy(head, headFilled, at, Math.min(chunk.length, at + headBytes - headFilled))
      headFilled += taken
      at += taken
      if (headFilled < headBytes) return
      headFilled = 0
      remaining = head.readUInt32BE(1) - 4
      if (remaining > maxMessageLength) {
        stream.destroy(
          new MessageTooLongError(
            `The database began a message of ${remaining} bytes, which is more than ${maxMessageLength}.`,
          ),
        )
        return
      }
      if (head[0] === dataRow) awaitRoom(stream, guard.onRow?.(remaining))
    }
  })
}

/** Reads nothing of a connection until the promise resolves. */
function awaitRoom(stream: Duplex, room: Promise<void> | undefined): void {
  if (room === undefined) return
  stream.pause()
  room.then(
    () => stream.resume(),
    (error: unknown) =>
      stream.destroy(error instanceof Error ? error : new Error('There is no room.', { cause: error })),
  )
}
