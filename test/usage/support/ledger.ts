// Starts a usage ledger on its own Postgres, with a clock that the test moves.
import { randomBytes } from 'node:crypto'
import type { Counter, UsagePush } from '@tenantry/contract'
import type { Test } from 'tap'
import { openDatabase, type Database } from '#control-plane/platform/database.ts'
import { nameInstallation } from '#control-plane/platform/installation.ts'
import { migrate, readMigrations } from '#control-plane/platform/migrations.ts'
import { createUsageLedger, type UsageLedger } from '#control-plane/usage/store-ledger.ts'
import { createLedgerClosing, type LedgerClosing } from '#control-plane/usage/store-closing.ts'
import { closeAll } from '#control-plane/usage/jobs-close-ledger.ts'
import { query, startPostgres } from '#test/support/postgres.ts'

export interface TestLedger {
  /** The URL of the control database. */
  url: string
  database: Database
  ledger: UsageLedger
  closing: LedgerClosing
  clock: { now: Date }
  /** Moves the clock to `at` and closes all hours and months that can be closed, as the leader does. */
  close(at: string): Promise<void>
  /** Resets the database to an unused installation. */
  empty(): Promise<void>
  /** Inserts a tenant that no control plane reconciles, and returns its ID. */
  tenant(createdAt?: string): Promise<string>
  sql(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
}

/** Starts a Postgres with a migrated control database, which stops when the test ends. */
export async function startLedger(t: Test, now = '2026-05-10T12:30:00Z'): Promise<TestLedger> {
  const postgres = await startPostgres()
  const url = postgres.url('control')
  await migrate(url, await readMigrations())
  const database = openDatabase(url)
  const clock = { now: new Date(now) }
  const closing = createLedgerClosing(database, () => clock.now)
  await nameInstallation(database, 'c0ffee00-0000-4000-8000-000000000000')
  await query(url, "insert into regions (id, engine, domain) values ('local', 'process', 'localhost')")
  t.teardown(async () => {
    await database.$disconnect()
    await postgres.stop()
  })
  return {
    url,
    database,
    clock,
    closing,
    ledger: createUsageLedger(database, () => clock.now),
    async close(at) {
      clock.now = new Date(at)
      await closeAll(closing, clock.now, 0n)
    },
    async empty() {
      await query(
        url,
        'truncate usage_counters, usage_sources, usage_tenants, usage_months, usage_corrections, plan_periods, tenants cascade',
      )
      await query(url, "update usage_closing set kept_from = 'epoch'")
      await query(url, 'update installation set epoch = 0')
    },
    async tenant(createdAt = '2026-05-01T00:00:00Z') {
      const id = newTenantId()
      await query(
        url,
        `insert into tenants (id, name, plan_id, region_id, isolation, created_at, updated_at)
          values ($1, $2, 'Free', 'local', 'schema-per-tenant', $3, $3)`,
        [id, `n-${id.slice(2)}`, createdAt],
      )
      return id
    },
    sql: (text, values) => query(url, text, values),
  }
}

export function newTenantId(): string {
  return `t_${randomBytes(10).toString('hex')}`
}

/** Returns a counter of successful GET requests of the REST group, changed by `more`. */
export function requests(tenantId: string, hour: string, value: number, more: Partial<Counter> = {}): Counter {
  return {
    tenant_id: tenantId,
    hour,
    meter: 'requests',
    group: 'rest',
    method: 'GET',
    status_class: '2xx',
    bucket: '',
    value,
    ...more,
  }
}

export function pushOf(source: string, boot: string, counters: Counter[], completeUntil?: string): UsagePush {
  return { source, boot, counters, ...(completeUntil === undefined ? {} : { complete_until: completeUntil }) }
}
