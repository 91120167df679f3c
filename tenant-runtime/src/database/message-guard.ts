// A bound on what Postgres may send in one message: a row becomes a string, and a string beyond V8's limit, or the memory
// of many, would be the end of the runtime for all tenants.
import type { Duplex } from 'node:stream'
import type pg from 'pg'

const maxMessageLength = 64 * 1024 * 1024
/** Of a message: its type, and its length without that. */
const headBytes = 5

export class MessageTooLong extends Error {}

/** Ends a connection on which a message beyond the bound begins, before anything of it is gathered. */
export function guardMessages(client: pg.Client): void {
  // node-postgres has no public way to its socket.
  const { stream } = (client as unknown as { connection: { stream: Duplex } }).connection
  const head = Buffer.alloc(headBytes)
  let have = 0
  let left = 0
  stream.prependListener('data', (chunk: Buffer) => {
    for (let at = 0; at < chunk.length;) {
      if (left > 0) {
        const step = Math.min(left, chunk.length - at)
        left -= step
        at += step
        continue
      }
      const taken = chunk.copy(head, have, at, Math.min(chunk.length, at + headBytes - have))
      have += taken
      at += taken
      if (have < headBytes) return
      have = 0
      left = head.readUInt32BE(1) - 4
      if (left > maxMessageLength) {
        stream.destroy(new MessageTooLong(`the database began a message of ${left} bytes`))
        return
      }
    }
  })
}
