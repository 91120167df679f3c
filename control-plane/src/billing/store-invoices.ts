// Stores invoices in the control database.
import { Value } from 'typebox/value'
import { Party, type PriceListText } from './price-list.ts'
import { monthText } from '../platform/months.ts'
import { ControlError } from '../platform/errors.ts'
import { releaseAdjustments } from './store-adjustments.ts'
import { afterPosition, decodeCursor, toPage } from '../platform/cursor.ts'
import type { Database } from '../platform/database.ts'
import { priceListsOf, toInvoices } from './store-invoice-rows.ts'
import { saveInvoices } from './store-write-invoices.ts'
import { ledWrite } from '../platform/led-write.ts'
import { lock, type Lock } from '../platform/locks.ts'
import type { PageRequest } from '../platform/page.ts'
import { invoiceNotFound, type Invoice, type InvoiceContent } from './invoice.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import { uuidPattern } from '../platform/uuid.ts'

interface InvoiceStoreOptions {
  database: Database
  now: () => Date
  /** The prefix of each invoice's number. */
  numberPrefix: string
}

/** The invoices of tenants, and their buyers. */
export type InvoiceStore = ReturnType<typeof createInvoiceStore>

export function createInvoiceStore({ database, now, numberPrefix }: InvoiceStoreOptions) {
  return {
    /** Lists a tenant's invoices, void ones too, oldest first. The tenant may be deleted. */
    async list(
      tenantId: string,
      { limit, cursor }: PageRequest,
    ): Promise<{ items: Invoice[]; nextCursor: string | undefined }> {
      const rows = await database.invoice.findMany({
        where: { tenantId, ...(cursor === undefined ? {} : afterPosition(decodeCursor(cursor, uuidPattern))) },
        orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
        take: limit + 1,
      })
      const { items, nextCursor } = toPage(rows, limit, (row) => row)
      return { items: await toInvoices(database, items), nextCursor }
    },

    /** Returns a tenant's invoice; undefined if it does not exist. */
    async get(tenantId: string, id: string): Promise<Invoice | undefined> {
      const row = await database.invoice.findFirst({ where: { id, tenantId } })
      return row === null ? undefined : (await toInvoices(database, [row]))[0]
    },

    /** Returns the month's invoice that is not void; undefined when there is none. */
    async ofMonth(tenantId: string, month: Date): Promise<Invoice | undefined> {
      const row = await database.invoice.findFirst({ where: { tenantId, month, state: { not: 'void' } } })
      return row === null ? undefined : (await toInvoices(database, [row]))[0]
    },

    /**
     * Returns the price list of each tenant's latest invoice of the month, which also rates later corrections. Tenants
     * that were not invoiced are left out.
     */
    pricesOf: (tenantIds: readonly string[], month: Date): Promise<ReadonlyMap<string, PriceListText>> =>
      priceListsOf(database, tenantIds, month),

    /** Returns the buyers that were set, by tenant. */
    async buyers(tenantIds: readonly string[]): Promise<ReadonlyMap<string, Party>> {
      const rows = await database.buyer.findMany({ where: { tenantId: { in: [...tenantIds] } } })
      return new Map(rows.map(({ tenantId, name, lines }) => [tenantId, Value.Parse(Party, { name, lines })]))
    },

    /** Sets the buyer of invoices that are made from now on. */
    async putBuyer(tenantId: string, buyer: Party, { transaction, audit }: RecordedWrite): Promise<Party> {
      await lock(transaction, `tenant:${tenantId}`)
      const data = { name: buyer.name, lines: buyer.lines, updatedAt: now() }
      await transaction.buyer.upsert({ where: { tenantId }, create: { tenantId, ...data }, update: data })
      audit({ action: 'tenant.set_buyer', target: tenantId, detail: { name: buyer.name } })
      return buyer
    },

    /**
     * Stores a month's invoice. A final invoice stays as it is and is returned.
     * @param final false: stores a draft, which replaces an existing draft
     * @returns undefined when nothing was stored, because the tenant's adjustments have changed since the content was
     *   composed
     */
    async save(
      content: InvoiceContent,
      final: boolean,
      { transaction, audit }: RecordedWrite,
    ): Promise<Invoice | undefined> {
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

    /**
     * Makes an invoice void and releases its adjustments.
     * @throws ControlError INVOICE_NOT_FOUND, INVOICE_NOT_FINAL
     */
    async makeVoid(
      tenantId: string,
      id: string,
      reason: string,
      { transaction, audit }: RecordedWrite,
    ): Promise<Invoice> {
      await lock(transaction, `tenant:${tenantId}`)
      const row = await transaction.invoice.findFirst({ where: { id, tenantId } })
      if (row === null) throw invoiceNotFound()
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

/** The writes of the job that closes months. Only the leader may write: they throw `LeadershipLost` otherwise. */
export type InvoiceLedger = ReturnType<typeof createInvoiceLedger>

export function createInvoiceLedger({ database, now, numberPrefix }: InvoiceStoreOptions) {
  return {
    /**
     * Returns the tenants whose month needs no invoice: it has one that is or was final, or a draft where drafts count.
     */
    async settled(month: Date, tenantIds: readonly string[], { drafts }: { drafts: boolean }): Promise<Set<string>> {
      const rows = await database.invoice.findMany({
        where: { month, tenantId: { in: [...tenantIds] }, ...(drafts ? {} : { state: { not: 'draft' } }) },
        select: { tenantId: true },
      })
      return new Set(rows.map(({ tenantId }) => tenantId))
    },

    /**
     * Stores invoices as `InvoiceStore.save` does, all in one transaction.
     * @returns the number of stored invoices
     */
    saveAll: (contents: readonly InvoiceContent[], final: boolean, epoch: bigint): Promise<number> =>
      ledWrite(
        database,
        epoch,
        contents.map(({ tenant_id: id }): Lock => `tenant:${id}`),
        async (transaction) => {
          const ids = await saveInvoices(transaction, contents, { final, at: now(), numberPrefix })
          return ids.filter((id) => id !== undefined).length
        },
      ),

    /** Whether every invoice of the month was made. */
    async finished(month: Date): Promise<boolean> {
      return (await database.invoicedMonth.count({ where: { month } })) > 0
    },

    /** Records that every invoice of the month was made. */
    finish: (month: Date, epoch: bigint): Promise<void> =>
      ledWrite(database, epoch, [], async (transaction) => {
        await transaction.invoicedMonth.createMany({ data: [{ month, finishedAt: now() }], skipDuplicates: true })
      }),

    /**
     * Returns the currencies, other than this one, of invoices that are not void and of adjustments that are on no
     * invoice.
     */
    async currenciesBut(currency: string): Promise<string[]> {
      // The few price lists name every currency; invoices are searched only where a list has another one.
      const rows = await database.$queryRaw<{ currency: string }[]>`
        select currency from (select distinct text::jsonb->>'currency' as currency from price_lists) l
        where currency <> ${currency} and exists (select from invoices i where i.state <> 'void' and i.content->>'currency' = l.currency)
        union select distinct currency from adjustments where currency <> ${currency} and invoice_id is null`
      return rows.map((row) => row.currency)
    },
  }
}
