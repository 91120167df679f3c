// The log of changes of tenants and of blocked addresses: a row in the transaction of the change, and a call within this process
// after its commit. The change feed of every control plane reads the rows.
import type { Database, Transaction } from './database.ts'

/**
 * - `wanted`: an operator changed the desired state. The reconciler listens.
 * - `published`: the reconciler changed what runtimes and gateways receive. The watches listen to this and to `wanted`.
 * - `observed`: the reconciler observed the tenant's state, or an attempt ended. Waiting API requests listen.
 * - `blocked`: an operator blocked or unblocked an address, which is the change's subject. The gateways' watches listen.
 */
export type ChangeKind = 'wanted' | 'published' | 'observed' | 'blocked'

/** Listeners in this process, by the database that they follow. */
const feeds = new WeakMap<Database, Set<() => void>>()

/**
 * Writes a change of a tenant or of an address to the log, in the transaction of the change. The caller must call
 * `reportCommit` after the commit.
 */
export async function recordChange(transaction: Transaction, kind: ChangeKind, subject: string): Promise<void> {
  await transaction.$executeRaw`
    insert into changes (kind, tenant_id, transaction_id) values (${kind}, ${subject}, pg_current_xact_id()::text::bigint)`
}

/** Reports a commit to the listeners in this process, so that they do not wait for their next poll. */
export function reportCommit(database: Database): void {
  for (const listener of feeds.get(database) ?? []) listener()
}

/** Subscribes to commits of this process. @returns a function that ends the subscription */
export function onCommit(database: Database, listener: () => void): () => void {
  const listeners = feeds.get(database) ?? new Set()
  feeds.set(database, listeners.add(listener))
  return () => listeners.delete(listener)
}
