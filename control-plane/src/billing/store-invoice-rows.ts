// Converts invoices between rows and values. Price lists are stored once, by their hash.
import { hash as digest } from 'node:crypto'
import { Value } from 'typebox/value'
import { InvoiceContent, type Invoice } from './invoice.ts'
import type { InvoiceState } from './invoice-state.ts'
import { PriceListText } from './price-list.ts'
import type { Database, Prisma, Transaction } from '../platform/database.ts'

interface InvoiceRow {
  id: string
  tenantId: string
  month: Date
  state: string
  label: string | null
  content: unknown
  createdAt: Date
  finalAt: Date | null
  voidedAt: Date | null
  voidReason: string | null
}

interface ListKey {
  sha256: string
  text: string
}

const listKeys = new WeakMap<PriceListText, ListKey>()

/** Returns the key that replaces a price list in `content`. The key of each value is computed once. */
function listKey(list: PriceListText): ListKey {
  const known = listKeys.get(list)
  if (known !== undefined) return known
  const text = JSON.stringify(list)
  const key = { sha256: digest('sha256', text), text }
  listKeys.set(list, key)
  return key
}

export function withoutLists(content: InvoiceContent): Prisma.InputJsonObject {
  return {
    ...content,
    basis: {
      ...content.basis,
      months: content.basis.months.map((month) => ({ ...month, prices: listKey(month.prices).sha256 })),
    },
  }
}

/** Stores the price lists of the contents, sorted so that no two transactions wait for each other. */
export async function savePriceLists(
  transaction: Transaction,
  contents: readonly InvoiceContent[],
  at: Date,
): Promise<void> {
  const lists = new Map(
    contents
      .flatMap(({ basis }) => basis.months.map(({ prices }) => listKey(prices)))
      .map((key) => [key.sha256, key.text]),
  )
  await transaction.priceList.createMany({
    data: [...lists].map(([sha256, text]) => ({ sha256, text, firstUsedAt: at })).sort(bySha256),
    skipDuplicates: true,
  })
}

function bySha256(a: { sha256: string }, b: { sha256: string }): number {
  return a.sha256 < b.sha256 ? -1 : 1
}

/** Returns the price list of each tenant's latest invoice of the month. */
export async function priceListsOf(
  database: Database,
  tenantIds: readonly string[],
  month: Date,
): Promise<ReadonlyMap<string, PriceListText>> {
  const rows = await database.$queryRaw<{ tenant_id: string; text: string }[]>`
    select distinct on (i.tenant_id) i.tenant_id, p.text
    from invoices i join price_lists p on p.sha256 = i.content#>>'{basis,months,0,prices}'
    where i.tenant_id = any(${[...tenantIds]}) and i.month = ${month} and i.state <> 'draft'
    order by i.tenant_id, i.revision desc`
  const lists = new Map(
    [...new Set(rows.map(({ text }) => text))].map((text) => [text, Value.Parse(PriceListText, JSON.parse(text))]),
  )
  return new Map(
    rows.flatMap(({ tenant_id: id, text }) => {
      const list = lists.get(text)
      return list === undefined ? [] : [[id, list]]
    }),
  )
}

/**
 * Reads invoices from their rows.
 * @throws Error when a stored content does not have the form that `withoutLists` writes
 */
export async function toInvoices(
  database: Pick<Database, 'priceList'> | Transaction,
  rows: readonly InvoiceRow[],
): Promise<Invoice[]> {
  const keys = new Set(rows.flatMap(({ content }) => listKeysOf(content)))
  const stored = await database.priceList.findMany({ where: { sha256: { in: [...keys] } } })
  const lists = new Map(stored.map(({ sha256, text }) => [sha256, Value.Parse(PriceListText, JSON.parse(text))]))
  return rows.map((row) => ({
    id: row.id,
    tenantId: row.tenantId,
    month: row.month,
    // A check constraint limits it to its values.
    state: row.state as InvoiceState,
    number: row.label ?? undefined,
    content: Value.Parse(InvoiceContent, withLists(row.content, lists)),
    createdAt: row.createdAt,
    finalAt: row.finalAt ?? undefined,
    voidedAt: row.voidedAt ?? undefined,
    voidReason: row.voidReason ?? undefined,
  }))
}

interface StoredContent {
  basis: { months: { prices: string }[] }
}

function listKeysOf(content: unknown): string[] {
  return (content as StoredContent).basis.months.map(({ prices }) => prices)
}

function withLists(content: unknown, lists: ReadonlyMap<string, PriceListText>): unknown {
  const stored = content as StoredContent
  return {
    ...stored,
    basis: {
      ...stored.basis,
      months: stored.basis.months.map((month) => ({ ...month, prices: lists.get(month.prices) })),
    },
  }
}
