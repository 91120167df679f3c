// Measures how fast the ledger of many tenants is read, closed and invoiced after a year, and how large it is.
import { readFile } from 'node:fs/promises'
import { readBillingConfig, createClosing, openBilling } from '#control-plane/billing/index.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import { nextMonth, monthText } from '#control-plane/platform/months.ts'
import {
  toPageBody,
  toUsageBody,
  resourceNames,
  createUsagePostings,
  createLedgerClosing,
  closeAll,
  createUsageReader,
} from '#control-plane/usage/index.ts'
import { createPlanHistory, createPlanStore } from '#control-plane/plans/index.ts'
import { quantile, type Figures, type Report } from '#bench/figures.ts'
import { openLedgerScene, type LedgerScene } from './ledger-scene.ts'
import { watchMemory } from './memory.ts'

const pageSize = 100

/**
 * Measures the ledger.
 * @param tenants `TENANTRY_BENCH_TENANTS`, or the number that the published figures are about
 */
export async function ledgerFigures(
  report: Report,
  tenants = Number(process.env['TENANTRY_BENCH_TENANTS'] ?? 100_000),
): Promise<Figures> {
  const scene = await openLedgerScene(tenants, report)
  try {
    const bytes = await bytesPerTenantMonth(scene)
    report(`${bytes.toFixed(0)} bytes a tenant and month`)
    const { one, page } = await reading(scene)
    report(
      `usage of a tenant: p50 ${quantile(one, 0.5).toFixed(1)} ms, p99 ${quantile(one, 0.99).toFixed(1)} ms; ` +
        `page: p50 ${quantile(page, 0.5).toFixed(1)} ms, p99 ${quantile(page, 0.99).toFixed(1)} ms`,
    )
    const seconds = await monthClose(scene)
    report(`month closed in ${seconds.toFixed(1)} s`)
    const invoices = await monthInvoices(scene)
    report(
      `${tenants} invoices made in ${invoices.seconds.toFixed(1)} s, with ${(invoices.bytes / 1e6).toFixed(0)} MB of memory at most`,
    )
    return {
      usage_p99_ms: { value: quantile(one, 0.99), unit: 'ms', target: '≤ 20' },
      list_p99_ms: { value: quantile(page, 0.99), unit: 'ms', target: '≤ 50' },
      close_s: { value: seconds, unit: 's', target: '≤ 120' },
      invoices_s: { value: invoices.seconds, unit: 's', target: '≤ 600' },
      bytes_per_tenant_month: { value: bytes, unit: 'B', target: 'stated' },
    }
  } finally {
    await scene.close()
  }
}

async function bytesPerTenantMonth({ sql, tenantIds }: LedgerScene): Promise<number> {
  const [row] = await sql(
    `select pg_total_relation_size('usage_months') + pg_total_relation_size('usage_tenants') as bytes,
      (select count(*) from usage_months) as months`,
  )
  if (tenantIds.length === 0) throw new Error('The scene has no tenants')
  return Number(row?.['bytes']) / Number(row?.['months'])
}

/**
 * Reads usage of random tenants one after the other in the last hour of the month, without a request to the tenant's
 * runtime.
 */
async function reading({ database, month, tenantIds }: LedgerScene): Promise<{ one: number[]; page: number[] }> {
  const clock = { ...systemClock, now: () => new Date(nextMonth(month).getTime() - 1) }
  const reader = createUsageReader({
    postings: createUsagePostings(database),
    plans: createPlanStore(database),
    history: createPlanHistory(database),
    clock,
    regions: new Map(),
    tenants: { get: () => Promise.resolve(undefined) },
    store: { snapshot: () => Promise.resolve(undefined) },
    probe: { tenantUsage: () => Promise.resolve(undefined) },
  })
  const anyId = () => tenantIds[Math.floor(Math.random() * tenantIds.length)] ?? ''
  const usage = async () => {
    const subject = await reader.subject(anyId())
    if (subject === undefined) throw new Error('The ledger does not know a tenant of the scene')
    JSON.stringify(toUsageBody(await reader.read(subject, month), resourceNames))
  }
  const list = async () => {
    const { tenants, ...rest } = await reader.page(month, { after: anyId(), limit: pageSize }, {})
    JSON.stringify(toPageBody({ ...rest, tenants }, null))
  }
  for (let warm = 0; warm < 50; warm++) await Promise.all([usage(), list()])
  const [one, page]: [number[], number[]] = [[], []]
  for (let n = 0; n < 2_000; n++) one.push(await timed(usage))
  for (let n = 0; n < 1_000; n++) page.push(await timed(list))
  return { one, page }
}

/** Closes the last hour, with the counters of two gateways and of the homes, and then the month of every tenant. */
async function monthClose({ database, month, sql, tenantIds }: LedgerScene): Promise<number> {
  const now = new Date(nextMonth(month).getTime() + 15 * 60_000)
  const milliseconds = await timed(async () => {
    await closeAll(
      createLedgerClosing(database, () => now),
      now,
      0n,
    )
  })
  const [row] = await sql(
    'select count(*)::int as closed from usage_months where month = $1 and closed_at is not null',
    [month],
  )
  if (row?.['closed'] !== tenantIds.length)
    throw new Error(`The month is closed for ${String(row?.['closed'])} of ${tenantIds.length} tenants`)
  return milliseconds / 1000
}

/** Makes all tenants' invoices of the closed month as the leader does, with the example's prices. */
async function monthInvoices({
  database,
  month,
  sql,
  tenantIds,
}: LedgerScene): Promise<{ seconds: number; bytes: number }> {
  const example = await readFile(new URL('../../examples/prices.json', import.meta.url), 'utf8')
  const config = readBillingConfig(example.replace('2026-01', monthText(month)))
  const now = () => new Date(nextMonth(month).getTime() + 3_600_000)
  const log = {
    info: () => undefined,
    warn: (details: object, message: string) => {
      throw new Error(message, { cause: details })
    },
  }
  const parts = openBilling(database, config, now)
  const closing = createClosing({ ...parts, config, clock: { ...systemClock, now }, measure: () => undefined, log }, 0n)
  let milliseconds = 0
  const { max } = await watchMemory(process.pid, async () => {
    milliseconds = await timed(async () => {
      await closing.poll(new AbortController().signal)
    })
  })
  const [row] = await sql(
    `select count(*)::int as made, max(number) as last, count(distinct tenant_id)::int as tenants
      from invoices where month = $1 and state = 'final'`,
    [month],
  )
  for (const name of ['made', 'last', 'tenants']) {
    if (row?.[name] !== tenantIds.length)
      throw new Error(`The invoices' ${name} is ${String(row?.[name])}, not ${tenantIds.length}`)
  }
  return { seconds: milliseconds / 1000, bytes: max }
}

async function timed(work: () => Promise<void>): Promise<number> {
  const begin = performance.now()
  await work()
  return performance.now() - begin
}
