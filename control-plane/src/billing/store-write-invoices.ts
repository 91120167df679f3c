// Writes invoices, numbers final ones without a gap, and emits their events to the operators' webhooks.
import { randomUUID } from 'node:crypto'
import { readDecimalText } from './money.ts'
import type { InvoiceContent } from './invoice.ts'
import type { InvoiceState } from './invoice-state.ts'
import { monthText, parseMonth } from '../platform/months.ts'
import { billAdjustments, dueAdjustments } from './store-adjustments.ts'
import type { Transaction } from '../platform/database.ts'
import { savePriceLists, withoutLists } from './store-invoice-rows.ts'
import { emitOperatorEvents } from '../webhooks/index.ts'

interface SaveOptions {
  final: boolean
  at: Date
  numberPrefix: string
}

interface NewInvoice {
  content: InvoiceContent
  id: string
  revision: number
}

/**
 * Stores invoices. The caller's transaction holds the locks of all their tenants.
 * @returns the ids of the current invoices, in the order of the contents; undefined for a content that is out of date
 *   because the tenant's adjustments have changed since it was composed
 */
export async function saveInvoices(
  transaction: Transaction,
  contents: readonly InvoiceContent[],
  { final, at, numberPrefix }: SaveOptions,
): Promise<(string | undefined)[]> {
  const [current, outdated] = [await latestOf(transaction, contents), await outdatedOf(transaction, contents)]
  const ids: (string | undefined)[] = []
  const drafts: string[] = []
  const fresh: NewInvoice[] = []
  for (const content of contents) {
    const last = current.get(monthKey(content))
    if (last?.state === 'final') {
      ids.push(last.id)
      continue
    }
    if (outdated.has(content)) {
      ids.push(undefined)
      continue
    }
    if (last?.state === 'draft') drafts.push(last.id)
    const stored = {
      content,
      id: last?.state === 'draft' ? last.id : randomUUID(),
      revision: last === undefined ? 1 : last.revision + (last.state === 'void' ? 1 : 0),
    }
    fresh.push(stored)
    ids.push(stored.id)
  }
  if (drafts.length > 0) await transaction.invoice.deleteMany({ where: { id: { in: drafts } } })
  if (fresh.length === 0) return ids
  await savePriceLists(
    transaction,
    fresh.map(({ content }) => content),
    at,
  )
  const first = final ? await takeNumbers(transaction, fresh.length) : undefined
  const labels = fresh.map((_, nth) => (first === undefined ? '' : labelOf(numberPrefix, first + nth)))
  await insertInvoices(transaction, fresh, { first, labels, at })
  await billAdjustments(
    transaction,
    fresh.flatMap(({ content, id }) => adjustmentsOf(content).map((adjustmentId) => ({ adjustmentId, invoiceId: id }))),
  )
  if (first !== undefined)
    await emitOperatorEvents(
      transaction,
      fresh.map(({ content, id }, nth) => toEvent(content, id, labels[nth] ?? '')),
      at,
    )
  return ids
}

/**
 * Inserts invoices with one statement, because a batch locks its tenants and the numbers.
 * @param first the number of the first invoice; undefined: drafts, which have no labels
 */
async function insertInvoices(
  transaction: Transaction,
  fresh: readonly NewInvoice[],
  { first, labels, at }: { first: number | undefined; labels: readonly string[]; at: Date },
): Promise<void> {
  const state: InvoiceState = first === undefined ? 'draft' : 'final'
  await transaction.$executeRaw`
    insert into invoices (id, tenant_id, month, revision, state, number, label, content, created_at, final_at)
    select id::uuid, tenant_id, month, revision, ${state}, ${first ?? null}::int + nth::int - 1, nullif(label, ''),
      content::jsonb, ${at}::timestamptz,
      case when ${state} = 'final' then ${at}::timestamptz end
    from unnest(
      ${fresh.map(({ id }) => id)}::text[], ${fresh.map(({ content }) => content.tenant_id)}::text[],
      ${fresh.map(({ content }) => startOf(content).toISOString())}::timestamptz[], ${fresh.map(({ revision }) => revision)}::int[],
      ${[...labels]}::text[], ${fresh.map(({ content }) => JSON.stringify(withoutLists(content)))}::text[]
    ) with ordinality as f(id, tenant_id, month, revision, label, content, nth)`
}

async function latestOf(transaction: Transaction, contents: readonly InvoiceContent[]) {
  const rows = await transaction.invoice.findMany({
    where: {
      tenantId: { in: contents.map(({ tenant_id: id }) => id) },
      month: { in: [...new Set(contents.map((content) => startOf(content).getTime()))].map((time) => new Date(time)) },
    },
    select: { id: true, tenantId: true, month: true, revision: true, state: true },
    orderBy: { revision: 'asc' },
  })
  return new Map(rows.map((row) => [monthKey({ tenant_id: row.tenantId, month: monthText(row.month) }), row]))
}

/** Returns the contents whose adjustments are not exactly those that are due. */
async function outdatedOf(transaction: Transaction, contents: readonly InvoiceContent[]): Promise<Set<InvoiceContent>> {
  const outdated = new Set<InvoiceContent>()
  for (const ofMonth of Map.groupBy(contents, ({ month }) => month).values()) {
    const [first] = ofMonth
    if (first === undefined) continue
    const due = await dueAdjustments(
      transaction,
      ofMonth.map(({ tenant_id: id }) => id),
      startOf(first),
    )
    for (const content of ofMonth) {
      const ids = (due.get(content.tenant_id) ?? []).map(({ id }) => id)
      if (ids.join() !== adjustmentsOf(content).join()) outdated.add(content)
    }
  }
  return outdated
}

function adjustmentsOf({ basis }: InvoiceContent): string[] {
  return (basis.adjustments ?? []).map(({ adjustment_id: id }) => id)
}

/**
 * Reserves invoice numbers.
 * @returns the first of them
 */
async function takeNumbers(transaction: Transaction, count: number): Promise<number> {
  const { last } = await transaction.invoiceNumber.update({ where: { id: 1 }, data: { last: { increment: count } } })
  return last - count + 1
}

function toEvent({ tenant_id, month, currency, total }: InvoiceContent, id: string, number: string) {
  const data = { tenant_id, invoice_id: id, number, month, currency, total_micro: String(readDecimalText(total)) }
  return { type: 'invoice.final' as const, tenantId: tenant_id, data, once: `invoice.final:${id}` }
}

function labelOf(prefix: string, number: number): string {
  return `${prefix}${String(number).padStart(6, '0')}`
}

function monthKey({ tenant_id, month }: Pick<InvoiceContent, 'tenant_id' | 'month'>): string {
  return `${tenant_id} ${month}`
}

function startOf({ month }: InvoiceContent): Date {
  const start = parseMonth(month)
  if (start === undefined) throw new Error(`Invalid month "${month}". It must be YYYY-MM.`)
  return start
}
