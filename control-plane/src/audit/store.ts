// Reads the audit log from the control database.
import type { AuditLog } from './audit-log.ts'
import type { Database } from '../platform/database.ts'
import { auditHash } from '../platform/audit-chain.ts'

const batch = 1_000

/** Creates the reader of the audit log, on the control database. */
export function createAuditLog(database: Database): AuditLog {
  return {
    async list(limit, before) {
      const rows = await database.auditEntry.findMany({
        where: before === undefined ? {} : { seq: { lt: before } },
        orderBy: { seq: 'desc' },
        take: limit,
      })
      return rows.map(({ seq, at, actor, action, target, detail }) => ({
        seq: Number(seq),
        at,
        actor,
        action,
        target,
        detail,
      }))
    },

    async verify() {
      let previous = ''
      let entries = 0
      let after = 0n
      for (;;) {
        const rows = await database.auditEntry.findMany({
          where: { seq: { gt: after } },
          orderBy: { seq: 'asc' },
          take: batch,
        })
        for (const row of rows) {
          if (row.previous !== previous || auditHash({ ...row, previous }) !== row.hash)
            return { entries, brokenAt: Number(row.seq) }
          previous = row.hash
          after = row.seq
          entries++
        }
        if (rows.length < batch) return { entries, brokenAt: undefined }
      }
    },
  }
}
