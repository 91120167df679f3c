// How fast the ledger of many tenants is read and closed after a year, and how large it is.
import { systemClock } from '../../control-plane/src/clock.ts'
import { toPageBody, toUsageBody, resourceNames } from '../../control-plane/src/http/usage-body.ts'
import { createPlanHistory } from '../../control-plane/src/persistence/plan-history-prisma.ts'
import { createPlanStore } from '../../control-plane/src/persistence/plan-store-prisma.ts'
import { createUsageBooks } from '../../control-plane/src/persistence/usage-books-prisma.ts'
import { createLedgerClosing } from '../../control-plane/src/persistence/usage-closing-prisma.ts'
import { closeAll } from '../../control-plane/src/usage/close-ledger.ts'
import { nextMonth } from '../../control-plane/src/usage/hours.ts'
import { createUsageReader } from '../../control-plane/src/usage/read-usage.ts'
import { quantile, type Figures, type Report } from '../figures.ts'
import { openLedgerScene, type LedgerScene } from './ledger-scene.ts'

const pageSize = 100

/** @param tenants `TENANTRY_BENCH_TENANTS`, or as many as the figures are about */
export async function ledgerFigures(report: Report, tenants = Number(process.env['TENANTRY_BENCH_TENANTS'] ?? 100_000)): Promise<Figures> {
  const scene = await openLedgerScene(tenants, report)
  try {
    const bytes = await bytesPerTenantMonth(scene)
    report(`${bytes.toFixed(0)} bytes a tenant and month`)
    const { one, page } = await reading(scene)
    report(`usage of a tenant: p50 ${quantile(one, 0.5).toFixed(1)} ms, p99 ${quantile(one, 0.99).toFixed(1)} ms; page: p50 ${quantile(page, 0.5).toFixed(1)} ms, p99 ${quantile(page, 0.99).toFixed(1)} ms`)
    const seconds = await monthClose(scene)
    report(`month closed in ${seconds.toFixed(1)} s`)
    return {
      usage_p99_ms: { value: quantile(one, 0.99), unit: 'ms', target: '≤ 20' },
      list_p99_ms: { value: quantile(page, 0.99), unit: 'ms', target: '≤ 50' },
      close_s: { value: seconds, unit: 's', target: '≤ 120' },
      bytes_per_tenant_month: { value: bytes, unit: 'B', target: 'stated' },
    }
  } finally {
    await scene.close()
  }
}

async function bytesPerTenantMonth({ sql, tenantIds }: LedgerScene): Promise<number> {
  const [row] = await sql("select pg_total_relation_size('usage_months') + pg_total_relation_size('usage_tenants') as bytes, (select count(*) from usage_months) as months")
  if (tenantIds.length === 0) throw new Error('there are no tenants')
  return Number(row?.['bytes']) / Number(row?.['months'])
}

/** In the last hour of the month, one after the other, of tenants at random; without the question to the tenant's runtime. */
async function reading({ database, month, tenantIds }: LedgerScene): Promise<{ one: number[]; page: number[] }> {
  const clock = { ...systemClock, now: () => new Date(nextMonth(month).getTime() - 1) }
  const reader = createUsageReader({
    books: createUsageBooks(database), plans: createPlanStore(database), history: createPlanHistory(database), clock, regions: new Map(),
    tenants: { get: () => Promise.resolve(undefined) }, store: { snapshot: () => Promise.resolve(undefined) }, probe: { tenantUsage: () => Promise.resolve(undefined) },
  })
  const anyId = () => tenantIds[Math.floor(Math.random() * tenantIds.length)] ?? ''
  const usage = async () => {
    const subject = await reader.subject(anyId())
    if (subject === undefined) throw new Error('a tenant of the scene is not known')
    JSON.stringify(toUsageBody(await reader.read(subject, month), resourceNames))
  }
  const list = async () => {
    const { tenants, ...rest } = await reader.page(month, { after: anyId(), limit: pageSize })
    JSON.stringify(toPageBody({ ...rest, tenants }, null))
  }
  for (let warm = 0; warm < 50; warm++) await Promise.all([usage(), list()])
  const [one, page]: [number[], number[]] = [[], []]
  for (let n = 0; n < 2_000; n++) one.push(await timed(usage))
  for (let n = 0; n < 1_000; n++) page.push(await timed(list))
  return { one, page }
}

/** The last hour, with what two gateways and the homes have counted in it, then the month of every tenant. */
async function monthClose({ database, month, sql, tenantIds }: LedgerScene): Promise<number> {
  const now = new Date(nextMonth(month).getTime() + 15 * 60_000)
  const milliseconds = await timed(() => closeAll(createLedgerClosing(database, () => now), now, 0n))
  const [row] = await sql('select count(*)::int as closed from usage_months where month = $1 and closed_at is not null', [month])
  if (row?.['closed'] !== tenantIds.length) throw new Error(`${String(row?.['closed'])} of ${tenantIds.length} tenants have the month closed`)
  return milliseconds / 1000
}

async function timed(work: () => Promise<void>): Promise<number> {
  const begin = performance.now()
  await work()
  return performance.now() - begin
}
