// The recorded fingerprint of the internal token, in the control database.
import { appendToChain } from '../platform/audit-chain.ts'
import type { Database } from '../platform/database.ts'
import { ledWrite } from '../platform/led-write.ts'
import type { InternalTokenRecord } from './jobs-record.ts'

/** Creates the record. */
export function createInternalTokenRecord(database: Database, now: () => Date): InternalTokenRecord {
  return {
    async read() {
      return (await database.installation.findFirstOrThrow()).internalTokenId ?? undefined
    },

    replace: (former, current, epoch) =>
      ledWrite(database, epoch, ['installation'], async (transaction) => {
        const { count } = await transaction.installation.updateMany({
          where: { internalTokenId: former ?? null },
          data: { internalTokenId: current },
        })
        // The first token of an installation replaces no other.
        if (count === 0 || former === undefined) return
        const entry = { action: 'internal_token.rotate', target: current, detail: { former } }
        await appendToChain(transaction, 'system', [entry], now)
      }),
  }
}
