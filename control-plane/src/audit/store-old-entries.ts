// Removes old entries of the audit log from the control database. The chain begins at the last removed entry afterwards.
import { appendToChain, removalAction } from '../platform/audit-chain.ts'
import type { Database } from '../platform/database.ts'
import { ledWrite } from '../platform/led-write.ts'

/** Removes old entries of the audit log. */
export type OldEntries = ReturnType<typeof createOldEntries>

/** Creates the store, on the control database; `now` dates the entries that report a removal. */
export function createOldEntries(database: Database, now: () => Date) {
  return {
    /**
     * Removes the oldest entries, as long as each is older than these days. The same transaction appends the entry that
     * reports it.
     * @returns the number of removed entries, at most `max`
     * @throws LeadershipLost if the epoch is no longer the leader's, without any write
     */
    remove: (epoch: bigint, days: number, max: number): Promise<number> =>
      ledWrite(database, epoch, [], async (transaction) => {
        const before = new Date(now().getTime() - days * 86_400_000)
        const oldest = await transaction.auditEntry.findMany({
          orderBy: { seq: 'asc' },
          take: max,
          select: { seq: true, at: true, hash: true },
        })
        const recent = oldest.findIndex(({ at }) => at >= before)
        const old = recent < 0 ? oldest : oldest.slice(0, recent)
        const last = old.at(-1)
        if (last === undefined) return 0
        const detail = { entries: old.length, last_seq: Number(last.seq), last_hash: last.hash, days }
        await appendToChain(transaction, 'system', [{ action: removalAction, target: 'audit_log', detail }], now)
        await transaction.auditEntry.deleteMany({ where: { seq: { lte: last.seq } } })
        return old.length
      }),
  }
}
