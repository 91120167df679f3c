// The store of invoices, as the API and the job that closes months use it.
import type { PageRequest } from '../platform/page.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import type { Invoice, InvoiceContent } from './invoice.ts'
import type { Party, PriceListText } from './price-list.ts'

export interface InvoiceStore {
  /** Lists a tenant's invoices, void ones too, oldest first. The tenant may be deleted. */
  list(tenantId: string, page: PageRequest): Promise<{ items: Invoice[]; nextCursor: string | undefined }>
  get(tenantId: string, id: string): Promise<Invoice | undefined>
  /** Returns the month's invoice that is not void; undefined when there is none. */
  ofMonth(tenantId: string, month: Date): Promise<Invoice | undefined>
  /**
   * Returns the price list of each tenant's latest invoice of the month, which also rates later corrections. Tenants
   * that were not invoiced are left out.
   */
  pricesOf(tenantIds: readonly string[], month: Date): Promise<ReadonlyMap<string, PriceListText>>
  /** Returns the buyers that were set, by tenant. */
  buyers(tenantIds: readonly string[]): Promise<ReadonlyMap<string, Party>>
  /** Sets the buyer of invoices that are made from now on. */
  putBuyer(tenantId: string, buyer: Party, write: RecordedWrite): Promise<Party>
  /**
   * Stores a month's invoice. A final invoice stays as it is and is returned.
   * @param final false: stores a draft, which replaces an existing draft
   * @returns undefined when nothing was stored, because the tenant's adjustments have changed since the content was
   *   composed
   */
  save(content: InvoiceContent, final: boolean, write: RecordedWrite): Promise<Invoice | undefined>
  /**
   * Makes an invoice void and releases its adjustments.
   * @throws ControlError INVOICE_NOT_FOUND, INVOICE_NOT_FINAL
   */
  makeVoid(tenantId: string, id: string, reason: string, write: RecordedWrite): Promise<Invoice>
}

/** The writes of the job that closes months. Only the leader may write: they throw `LeadershipLost` otherwise. */
export interface InvoiceLedger {
  /**
   * Returns the tenants whose month needs no invoice: it has one that is or was final, or a draft where drafts count.
   */
  settled(month: Date, tenantIds: readonly string[], counting: { drafts: boolean }): Promise<Set<string>>
  /**
   * Stores invoices as `InvoiceStore.save` does, all in one transaction.
   * @returns the number of stored invoices
   */
  saveAll(contents: readonly InvoiceContent[], final: boolean, epoch: bigint): Promise<number>
  finished(month: Date): Promise<boolean>
  finish(month: Date, epoch: bigint): Promise<void>
  /**
   * Returns the currencies, other than this one, of invoices that are not void and of adjustments that are on no
   * invoice.
   */
  currenciesBut(currency: string): Promise<string[]>
}
