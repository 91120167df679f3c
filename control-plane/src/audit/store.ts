// Reads the audit log from the control database, and verifies its hash chain.
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { auditHash, removalAction } from '../platform/audit-chain.ts'
import type { Database } from '../platform/database.ts'

const batch = 1_000

interface AuditEntry {
  seq: number
  at: Date
  /** The id of a platform key, or `system`. */
  actor: string
  action: string
  target: string
  detail: unknown
}

interface Verification {
  entries: number
  brokenAt: number | undefined
}

const Removal = Type.Object({ last_hash: Type.String() })

/** Reads and verifies the audit log. */
export type AuditLog = ReturnType<typeof createAuditLog>

/** Creates the reader of the audit log, on the control database. */
export function createAuditLog(database: Database) {
  return {
    /** Lists entries, newest first. `before` is the last `seq` of the page before. */
    async list(limit: number, before: number | undefined): Promise<AuditEntry[]> {
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

    /** Recomputes every hash. `brokenAt` is the first entry that does not match the one before it. */
    async verify(): Promise<Verification> {
      for (;;) {
        const begin = await beginning(database)
        const verified = await verifyFrom(database, begin)
        // While the entries were read, the oldest ones may have been removed.
        if (verified.brokenAt === undefined || (await beginning(database)) === begin) return verified
      }
    },
  }
}

/** Returns the hash at which the chain begins: that of the last removed entry, empty if none was removed. */
async function beginning(database: Database): Promise<string> {
  const removal = await database.auditEntry.findFirst({ where: { action: removalAction }, orderBy: { seq: 'desc' } })
  if (removal === null) return ''
  // A report without a hash was changed: the first entry does not match any text that is not a hash.
  return Value.Check(Removal, removal.detail) ? removal.detail.last_hash : 'unknown'
}

async function verifyFrom(database: Database, begin: string): Promise<Verification> {
  let previous = begin
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
}
