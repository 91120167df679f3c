// Locks of the control database that a transaction holds until it ends, each by the name of what it is about.
import type { Transaction } from './database.ts'

/**
 * - `tenant:ID`: what should be of a tenant, its operations, backups, adjustments and invoices
 * - `backup:ID`: a backup that the control database does not know yet
 * - `homes:REGION`: which shared database a new home comes into, while few have room
 * - `rollout:ID`, `rollouts:REGION`: a rollout's state; which one is under way in a region
 * - `webhook:ID`, `source:NAME`: a webhook; a source of usage
 * - `platform keys`: all of them, because one admin key must stay
 */
export type Lock =
  `${'tenant' | 'backup' | 'homes' | 'rollout' | 'rollouts' | 'webhook' | 'source'}:${string}` | 'platform keys'

/**
 * Waits until no other transaction holds any of these, and holds them. A transaction takes its locks before it changes a row, all
 * at once, and in an order that is the same for all: so no two wait for each other.
 */
export async function lock(transaction: Transaction, ...locks: readonly Lock[]): Promise<void> {
  if (locks.length === 0) return
  await transaction.$executeRaw`
    select pg_advisory_xact_lock(key)
    from (select distinct hashtextextended(name, 0) as key from unnest(${[...locks]}::text[]) as name order by key) as keys`
}
