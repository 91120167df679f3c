// A ledger on a real Postgres of its own, with a clock that the test moves.
import { randomBytes } from 'node:crypto'
import type { Counter, UsagePush } from '@tenantry/contract'
import type { Test } from 'tap'
import { openDatabase, type Database } from '../../../control-plane/src/persistence/database.ts'
import { migrate, readMigrations } from '../../../control-plane/src/persistence/migrations.ts'
import { createUsageLedger } from '../../../control-plane/src/persistence/usage-ledger-prisma.ts'
import type { UsageLedger } from '../../../control-plane/src/usage/usage-ledger.ts'
import { query, startPostgres } from '../../support/postgres.ts'

export interface TestLedger {
  database: Database
  ledger: UsageLedger
  clock: { now: Date }
  sql(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
}

/** Everything ends with the test. */
export async function startLedger(t: Test, now = '2026-05-10T12:30:00Z'): Promise<TestLedger> {
  const postgres = await startPostgres()
  const url = postgres.url('control')
  await migrate(url, await readMigrations())
  const database = openDatabase(url)
  const clock = { now: new Date(now) }
  t.teardown(async () => {
    await database.$disconnect()
    await postgres.stop()
  })
  return { database, clock, ledger: createUsageLedger(database, () => clock.now), sql: (text, values) => query(url, text, values) }
}

export function newTenantId(): string {
  return `t_${randomBytes(10).toString('hex')}`
}

/** Requests of one kind. */
export function requests(tenantId: string, hour: string, value: number, more: Partial<Counter> = {}): Counter {
  return { tenant_id: tenantId, hour, meter: 'requests', group: 'rest', method: 'GET', status_class: '2xx', bucket: '', value, ...more }
}

export function pushOf(source: string, boot: string, counters: Counter[], completeUntil?: string): UsagePush {
  return { source, boot, counters, ...(completeUntil === undefined ? {} : { complete_until: completeUntil }) }
}
