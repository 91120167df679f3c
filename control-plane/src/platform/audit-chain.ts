// The chain of audit entries: each entry's hash covers the previous entry, in the order of commits.
import { createHash } from 'node:crypto'
import type { Prisma, Transaction } from './database.ts'

/** An entry of the audit log before it is dated and chained. */
export interface AuditNote {
  action: string
  target: string
  detail: Prisma.InputJsonObject
}

/** Advisory lock of the end of the chain. */
const chainEnd = 7_246_305_116

/** The action of an entry that reports the removal of the oldest entries. */
export const removalAction = 'audit.remove'

/** Returns the `hash` of an audit entry; `previous` is empty for the first. */
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

/** Returns JSON with sorted keys: Postgres' jsonb does not preserve their order, so the hash must not depend on it. */
function sortedJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedJson)
  if (typeof value !== 'object' || value === null) return value
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, inner]) => [key, sortedJson(inner)])
}

/**
 * Appends entries to the chain. The transaction holds the end of the chain until its commit, and every other write
 * waits for it. The call must therefore come last in a transaction, without a wait after it.
 */
export async function appendToChain(
  transaction: Transaction,
  actor: string,
  notes: readonly AuditNote[],
  now: () => Date,
): Promise<void> {
  if (notes.length === 0) return
  // The lock is a statement of its own, so that the next one sees what was committed during the wait.
  await transaction.$executeRaw`select pg_advisory_xact_lock(${chainEnd}::bigint)`
  const last = await transaction.auditEntry.findFirst({ orderBy: { seq: 'desc' }, select: { hash: true } })
  let previous = last?.hash ?? ''
  for (const note of notes) {
    const entry = { at: now(), actor, ...note, previous }
    previous = auditHash(entry)
    await transaction.auditEntry.create({ data: { ...entry, hash: previous } })
  }
}
