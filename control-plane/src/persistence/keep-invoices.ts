// Writes invoices: one for a tenant's month, numbered without a gap when it becomes final, and told to the operators' webhooks.
import { randomUUID } from 'node:crypto'
import { readDecimalText } from '../billing/money.ts'
import type { InvoiceContent } from '../billing/invoice.ts'
import { monthText, parseMonth } from '../billing/months.ts'
import type { Transaction } from './database.ts'
import { keepLists, withoutLists } from './invoice-rows.ts'
import { emitOperatorEvent } from './operator-events-prisma.ts'

export interface Keeping {
  final: boolean
  at: Date
  numberPrefix: string
}

/** Ids of the invoices now current, in the order of the contents. The transaction is in line with all other writers (see `serialise`). */
export async function keepInvoices(transaction: Transaction, contents: readonly InvoiceContent[], { final, at, numberPrefix }: Keeping): Promise<string[]> {
  await keepLists(transaction, contents, at)
  const current = await latestOf(transaction, contents)
  const ids: string[] = []
  const fresh: { content: InvoiceContent; id: string; revision: number }[] = []
  for (const content of contents) {
    const last = current.get(placeOf(content))
    if (last?.state === 'final') {
      ids.push(last.id)
      continue
    }
    if (last?.state === 'draft') await transaction.invoice.delete({ where: { id: last.id } })
    const kept = { content, id: last?.state === 'draft' ? last.id : randomUUID(), revision: last === undefined ? 1 : last.revision + (last.state === 'void' ? 1 : 0) }
    fresh.push(kept)
    ids.push(kept.id)
  }
  const first = final && fresh.length > 0 ? await takeNumbers(transaction, fresh.length) : undefined
  await transaction.invoice.createMany({
    data: fresh.map(({ content, id, revision }, nth) => ({
      id, tenantId: content.tenant_id, month: startOf(content), revision, content: withoutLists(content), createdAt: at,
      ...(first === undefined ? { state: 'draft' } : { state: 'final', number: first + nth, label: labelOf(numberPrefix, first + nth), finalAt: at }),
    })),
  })
  if (first !== undefined) for (const [nth, { content, id }] of fresh.entries()) await tell(transaction, content, id, labelOf(numberPrefix, first + nth), at)
  return ids
}

async function latestOf(transaction: Transaction, contents: readonly InvoiceContent[]) {
  const rows = await transaction.invoice.findMany({
    where: { tenantId: { in: contents.map(({ tenant_id: id }) => id) }, month: { in: [...new Set(contents.map((content) => startOf(content).getTime()))].map((time) => new Date(time)) } },
    select: { id: true, tenantId: true, month: true, revision: true, state: true },
    orderBy: { revision: 'asc' },
  })
  return new Map(rows.map((row) => [placeOf({ tenant_id: row.tenantId, month: monthText(row.month) }), row]))
}

/** @returns the first of them */
async function takeNumbers(transaction: Transaction, count: number): Promise<number> {
  const { last } = await transaction.invoiceNumber.update({ where: { id: 1 }, data: { last: { increment: count } } })
  return last - count + 1
}

async function tell(transaction: Transaction, content: InvoiceContent, id: string, number: string, at: Date): Promise<void> {
  const { tenant_id, month, currency, total } = content
  const data = { tenant_id, invoice_id: id, number, month, currency, total_micro: String(readDecimalText(total)) }
  await emitOperatorEvent(transaction, { type: 'invoice.final', tenantId: tenant_id, data }, at, `invoice.final:${id}`)
}

function labelOf(prefix: string, number: number): string {
  return `${prefix}${String(number).padStart(6, '0')}`
}

function placeOf({ tenant_id, month }: Pick<InvoiceContent, 'tenant_id' | 'month'>): string {
  return `${tenant_id} ${month}`
}

function startOf({ month }: InvoiceContent): Date {
  const start = parseMonth(month)
  if (start === undefined) throw new Error(`"${month}" is no month`)
  return start
}
