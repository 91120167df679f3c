// The chain of audit entries: each entry's hash covers the entry before it, in the order in which transactions commit.
import { createHash } from 'node:crypto'
import type { Prisma, Transaction } from './database.ts'

/** What was done, as the audit log records it. */
export interface AuditNote {
  action: string
  target: string
  detail: Prisma.InputJsonObject
}

/** The advisory lock of the end of the chain. */
const chainEnd = 7_246_305_116

/** `hash` of an audit entry; `previous` is empty for the first. */
export function auditHash(entry: {
  at: Date
  actor: string
  action: string
  target: string
  detail: unknown
  previous: string
}): string {
  const { at, actor, action, target, detail, previous } = entry
  return createHash('sha256')
    .update(JSON.stringify([previous, at.toISOString(), actor, action, target, sortedJson(detail)]))
    .digest('hex')
}

/** Postgres' jsonb doesn't keep the order of keys, so the hash must not depend on it. */
function sortedJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedJson)
  if (typeof value !== 'object' || value === null) return value
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, inner]) => [key, sortedJson(inner)])
}

/**
 * Appends entries to the chain. From here until its commit the transaction holds the end of the chain, for which every other
 * write waits: this comes last in a transaction, and nothing may be waited for after it.
 */
export async function appendToChain(
  transaction: Transaction,
  actor: string,
  notes: readonly AuditNote[],
  now: () => Date,
): Promise<void> {
  if (notes.length === 0) return
  // A statement of its own: the next one sees what was committed while this one waited.
  await transaction.$executeRaw`select pg_advisory_xact_lock(${chainEnd}::bigint)`
  const last = await transaction.auditEntry.findFirst({ orderBy: { seq: 'desc' }, select: { hash: true } })
  let previous = last?.hash ?? ''
  for (const note of notes) {
    const entry = { at: now(), actor, ...note, previous }
    previous = auditHash(entry)
    await transaction.auditEntry.create({ data: { ...entry, hash: previous } })
  }
}
