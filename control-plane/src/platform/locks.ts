// Locks of the control database that a transaction holds until it ends, named after the objects that they protect.
import type { Transaction } from './database.ts'

/**
 * - `tenant:ID`: a tenant's desired state, operations, backups, adjustments and invoices
 * - `backup:ID`: a backup that is not in the control database yet
 * - `homes:REGION`: the choice of the shared database of a new home while few slots are free
 * - `rollout:ID`, `rollouts:REGION`: a rollout's state; the rollout in progress in a region
 * - `rebalance:REGION`: the rebalance in progress in a region, and the limits of its shared databases
 * - `superuser:REGION`: the password of the superuser of a region's shared Postgres
 * - `webhook:ID`, `source:NAME`: a webhook; a source of usage
 * - `platform keys`: all platform keys, because one admin key must remain
 * - `certificate authority`: the certificate authority, because there is one
 * - `installation`: changes of the installation's row by the leader, whose other writes lock that row for reading
 * - `blocked addresses`: all blocked addresses, because their number is limited
 */
export type Lock =
  | `${'tenant' | 'backup' | 'homes' | 'rollout' | 'rollouts' | 'rebalance' | 'webhook' | 'source' | 'superuser'}:${string}`
  | 'platform keys'
  | 'blocked addresses'
  | 'installation'
  | 'certificate authority'

/**
 * Waits for the locks and holds them. A transaction takes all its locks at once, before it changes a row, and in one
 * global order, so that no two transactions wait for each other.
 */
export async function lock(transaction: Transaction, ...locks: readonly Lock[]): Promise<void> {
  if (locks.length === 0) return
  await transaction.$executeRaw`
    select pg_advisory_xact_lock(key)
    from (select distinct hashtextextended(name, 0) as key from unnest(${[...locks]}::text[]) as name order by key) as keys`
}
