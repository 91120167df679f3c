// Writes invoices as CSV (RFC 4180).
import type { InvoiceBody, InvoiceSummary, UpcomingBody } from './invoice-body.ts'

type Cell = string | number | boolean | null

/** Returns a cell's text. An apostrophe precedes text that a spreadsheet would take for a formula, but not numbers. */
function cellText(cell: Cell): string {
  const text = String(cell ?? '')
  const safe = typeof cell === 'string' && /^[=+@\t\r-]/.test(text) && !/^-?[0-9.]+$/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

function csv(rows: readonly (readonly Cell[])[]): string {
  return rows.map((row) => `${row.map(cellText).join(',')}\r\n`).join('')
}

const lineColumns = [
  'charge',
  'month',
  'correction',
  'plan',
  'from',
  'to',
  'resource',
  'tier',
  'unit',
  'unit_price',
  'quantity',
  'amount',
  'tax_rate',
  'description',
  'quantity_text',
  'adjustment_id',
  'exact_amount',
  'isolation',
] as const

/** Writes an invoice: one row for each line, then one each for `net`, every tax and `total`. */
export function invoiceCsv(invoice: InvoiceBody | UpcomingBody): string {
  const head = [invoice.number, invoice.state, invoice.tenant_id, invoice.currency]
  const tail = [invoice.tenant_name ?? null]
  const sum = (charge: string, amount: string, description: string, rate: string | null = null) => [
    ...head,
    ...lineColumns.map(
      (column) => ({ charge, month: invoice.month, amount, description, tax_rate: rate })[column as string] ?? null,
    ),
    ...tail,
  ]
  return csv([
    ['number', 'state', 'tenant_id', 'currency', ...lineColumns, 'tenant_name'],
    ...invoice.lines.map((line) => [...head, ...lineColumns.map((column) => line[column] ?? null), ...tail]),
    sum('net', invoice.net, 'Net'),
    ...invoice.taxes.map(({ name, rate, tax }) => sum('tax', tax, name, rate)),
    sum(
      'total',
      invoice.total,
      invoice.state === 'upcoming' ? `Total so far, with the usage up to ${invoice.as_of}; not an invoice` : 'Total',
    ),
  ])
}

const summaryColumns = [
  'invoice_id',
  'number',
  'state',
  'tenant_id',
  'month',
  'currency',
  'net',
  'total',
  'payable',
  'created_at',
  'final_at',
  'voided_at',
] as const

export function invoicesCsv(invoices: readonly InvoiceSummary[]): string {
  return csv([summaryColumns, ...invoices.map((invoice) => summaryColumns.map((column) => invoice[column]))])
}
