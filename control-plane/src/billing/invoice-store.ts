// Where invoices are kept, as the API and the closing of months use it.
import type { PageRequest } from '../platform/page.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import type { Invoice, InvoiceContent } from './invoice.ts'
import type { Party, PriceListText } from './price-list.ts'

export interface InvoiceStore {
  /** Oldest first, those that are void too; also of a tenant that is gone. */
  list(tenantId: string, page: PageRequest): Promise<{ items: Invoice[]; nextCursor: string | undefined }>
  get(tenantId: string, id: string): Promise<Invoice | undefined>
  /** The one that is not void; undefined when there is none. */
  ofMonth(tenantId: string, month: Date): Promise<Invoice | undefined>
  /** By which tenants' month was invoiced last: what is known later is rated by it, too. Those that were not invoiced are left out. */
  pricesOf(tenantIds: readonly string[], month: Date): Promise<ReadonlyMap<string, PriceListText>>
  /** Who is invoiced, where that was said. */
  buyers(tenantIds: readonly string[]): Promise<ReadonlyMap<string, Party>>
  /** Of invoices that are made from now on. */
  putBuyer(tenantId: string, buyer: Party, write: RecordedWrite): Promise<Party>
  /**
   * Keeps a month's invoice. One that is final already stays as it is and is given back.
   * @param final false: as a draft, in place of the draft before
   * @returns undefined: nothing was kept, because the tenant's adjustments are not those of the content any more; compose it anew
   */
  keep(content: InvoiceContent, final: boolean, write: RecordedWrite): Promise<Invoice | undefined>
  /** Sets its adjustments free. @throws ControlError INVOICE_NOT_FOUND, INVOICE_NOT_FINAL */
  makeVoid(tenantId: string, id: string, reason: string, write: RecordedWrite): Promise<Invoice>
}

/** Every write is the leader's: `LeadershipLost` when it is not any more. */
export interface InvoiceLedger {
  /**
   * Returns those of the tenants whose month needs nothing more by itself: it has an invoice that is final, or was and is
   * void; or it has a draft, where drafts count.
   */
  settled(month: Date, tenantIds: readonly string[], counting: { drafts: boolean }): Promise<Set<string>>
  /** As `InvoiceStore.keep`, all in one transaction. @returns how many were kept */
  keepAll(contents: readonly InvoiceContent[], final: boolean, epoch: bigint): Promise<number>
  finished(month: Date): Promise<boolean>
  finish(month: Date, epoch: bigint): Promise<void>
  /** Currencies of the invoices that are not void, and of the adjustments that none has yet, but this one. */
  currenciesBut(currency: string): Promise<string[]>
}
