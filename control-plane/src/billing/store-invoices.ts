// Stores invoices in the control database.
import { Value } from 'typebox/value'
import type { InvoiceLedger, InvoiceStore } from './invoice-store.ts'
import { Party } from './price-list.ts'
import { monthText } from '../platform/months.ts'
import { ControlError } from '../platform/errors.ts'
import { releaseAdjustments } from './store-adjustments.ts'
import { afterPosition, decodeCursor, toPage } from '../platform/cursor.ts'
import type { Database } from '../platform/database.ts'
import { priceListsOf, toInvoices } from './store-invoice-rows.ts'
import { saveInvoices } from './store-write-invoices.ts'
import { ledWrite } from '../platform/led-write.ts'
import { lock, type Lock } from '../platform/locks.ts'

const uuids = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

interface InvoiceStoreOptions {
  database: Database
  now: () => Date
  /** The prefix of each invoice's number. */
  numberPrefix: string
}

export function createInvoiceStore({ database, now, numberPrefix }: InvoiceStoreOptions): InvoiceStore {
  return {
    async list(tenantId, { limit, cursor }) {
      const rows = await database.invoice.findMany({
        where: { tenantId, ...(cursor === undefined ? {} : afterPosition(decodeCursor(cursor, uuids))) },
        orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
        take: limit + 1,
      })
      const { items, nextCursor } = toPage(rows, limit, (row) => row)
      return { items: await toInvoices(database, items), nextCursor }
    },

    async get(tenantId, id) {
      const row = await database.invoice.findFirst({ where: { id, tenantId } })
      return row === null ? undefined : (await toInvoices(database, [row]))[0]
    },

    async ofMonth(tenantId, month) {
      const row = await database.invoice.findFirst({ where: { tenantId, month, state: { not: 'void' } } })
      return row === null ? undefined : (await toInvoices(database, [row]))[0]
    },

    pricesOf: (tenantIds, month) => priceListsOf(database, tenantIds, month),

    async buyers(tenantIds) {
      const rows = await database.buyer.findMany({ where: { tenantId: { in: [...tenantIds] } } })
      return new Map(rows.map(({ tenantId, name, lines }) => [tenantId, Value.Parse(Party, { name, lines })]))
    },

    async putBuyer(tenantId, buyer, { transaction, audit }) {
      await lock(transaction, `tenant:${tenantId}`)
      const data = { name: buyer.name, lines: buyer.lines, updatedAt: now() }
      await transaction.buyer.upsert({ where: { tenantId }, create: { tenantId, ...data }, update: data })
      audit({ action: 'tenant.set_buyer', target: tenantId, detail: { name: buyer.name } })
      return buyer
    },

    async save(content, final, { transaction, audit }) {
      await lock(transaction, `tenant:${content.tenant_id}`)
      const [id] = await saveInvoices(transaction, [content], { final, at: now(), numberPrefix })
      if (id === undefined) return undefined
      const row = await transaction.invoice.findUniqueOrThrow({ where: { id } })
      const [stored] = await toInvoices(transaction, [row])
      if (stored === undefined) throw new Error('The invoice that was just stored does not exist.')
      const detail = { invoice_id: id, month: content.month, state: stored.state }
      audit({ action: 'invoice.close', target: content.tenant_id, detail })
      return stored
    },

    async makeVoid(tenantId, id, reason, { transaction, audit }) {
      await lock(transaction, `tenant:${tenantId}`)
      const row = await transaction.invoice.findFirst({ where: { id, tenantId } })
      if (row === null) throw new ControlError('INVOICE_NOT_FOUND', 'There is no such invoice.')
      if (row.state !== 'final')
        throw new ControlError(
          'INVOICE_NOT_FINAL',
          `The invoice is ${row.state}. Only a final invoice can be made void.`,
        )
      const changed = await transaction.invoice.update({
        where: { id },
        data: { state: 'void', voidedAt: now(), voidReason: reason },
      })
      await releaseAdjustments(transaction, id)
      const [voided] = await toInvoices(transaction, [changed])
      if (voided === undefined) throw new Error('The invoice that was just made void does not exist.')
      const detail = { invoice_id: id, month: monthText(row.month), number: row.label ?? '', reason }
      audit({ action: 'invoice.void', target: tenantId, detail })
      return voided
    },
  }
}

export function createInvoiceLedger({ database, now, numberPrefix }: InvoiceStoreOptions): InvoiceLedger {
  return {
    async settled(month, tenantIds, { drafts }) {
      const rows = await database.invoice.findMany({
        where: { month, tenantId: { in: [...tenantIds] }, ...(drafts ? {} : { state: { not: 'draft' } }) },
        select: { tenantId: true },
      })
      return new Set(rows.map(({ tenantId }) => tenantId))
    },

    saveAll: (contents, final, epoch) =>
      ledWrite(
        database,
        epoch,
        contents.map(({ tenant_id: id }): Lock => `tenant:${id}`),
        async (transaction) => {
          const ids = await saveInvoices(transaction, contents, { final, at: now(), numberPrefix })
          return ids.filter((id) => id !== undefined).length
        },
      ),

    async finished(month) {
      return (await database.invoicedMonth.count({ where: { month } })) > 0
    },

    finish: (month, epoch) =>
      ledWrite(database, epoch, [], async (transaction) => {
        await transaction.invoicedMonth.createMany({ data: [{ month, finishedAt: now() }], skipDuplicates: true })
      }),

    async currenciesBut(currency) {
      // The few price lists name every currency; invoices are searched only where a list has another one.
      const rows = await database.$queryRaw<{ currency: string }[]>`
        select currency from (select distinct text::jsonb->>'currency' as currency from price_lists) l
        where currency <> ${currency} and exists (select from invoices i where i.state <> 'void' and i.content->>'currency' = l.currency)
        union select distinct currency from adjustments where currency <> ${currency} and invoice_id is null`
      return rows.map((row) => row.currency)
    },
  }
}
