// Limits the size of one message from Postgres. A row becomes a string, and a string beyond V8's limit, or the memory of
// many, would end the runtime for all tenants.
import type { Duplex } from 'node:stream'
import type pg from 'pg'

const maxMessageLength = 64 * 1024 * 1024
/** The bytes of a message's type and length. */
const headBytes = 5

export class MessageTooLongError extends Error {}

/** Ends a connection on which a message beyond the limit begins, before any of it is buffered. */
export function guardMessages(client: pg.Client): void {
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
    }
  })
}
