// Writes an invoice as a PDF for the customer, on as many pages as its lines need.
import PDFDocument from 'pdfkit'
import { describeDay, describeInstant, describeMonth, shortDecimal } from './describe.ts'
import type { InvoiceBody, UpcomingBody } from './invoice-body.ts'
import { currencyDecimalPlaces, decimalText, readDecimalText } from './money.ts'
import { parseMonth } from '../platform/months.ts'
import type { PdfFonts } from './pdf-fonts.ts'
import { lineHeight, PdfText, type PdfDocument, type TextStyle } from './pdf-text.ts'

const page = { left: 56, right: 539, top: 56, bottom: 770, footer: 800 }
const columns = {
  description: { x: 56, width: 204 },
  quantity: { x: 260, width: 130 },
  price: { x: 392, width: 66 },
  amount: { x: 464, width: 75 },
}
const grey = '#6b6b6b'
const warning = '#a11'
const small: TextStyle = { size: 8.5 }
const label: TextStyle = { size: 7.5, color: grey }
const due: TextStyle = { size: 11, bold: true }

type Printed = InvoiceBody | UpcomingBody

/**
 * Writes an invoice or a preview as a PDF. The same invoice gives the same bytes. A preview states on every page that
 * it is not an invoice.
 */
export async function invoicePdf(invoice: Printed, fonts: PdfFonts): Promise<Buffer> {
  const document = new PDFDocument({
    size: 'A4',
    margin: 0,
    bufferPages: true,
    lang: 'en',
    info: {
      Title: `${titleOf(invoice)} ${invoice.number ?? invoice.month}`,
      Author: invoice.seller.name,
      CreationDate: dateOf(invoice),
    },
  })
  const chunks: Buffer[] = []
  const ended = new Promise<void>((resolve, reject) => document.on('end', resolve).on('error', reject))
  document.on('data', (chunk: Buffer) => chunks.push(chunk))
  const text = new PdfText(document, fonts)
  let y = drawHead(document, text, invoice)
  y = drawLines(document, text, invoice, y)
  y = drawTotals(document, text, invoice, y)
  drawNotes(document, text, invoice, y)
  drawFooters(document, text, invoice)
  document.end()
  await ended
  return Buffer.concat(chunks)
}

function dateOf(invoice: Printed): Date {
  return new Date(invoice.state === 'upcoming' ? invoice.as_of : (invoice.final_at ?? invoice.created_at))
}

function titleOf({ state, total }: Printed): string {
  if (state === 'upcoming') return 'Preview, not an invoice'
  const title = readDecimalText(total) < 0n ? 'Credit note' : 'Invoice'
  if (state === 'draft') return `Draft ${title.toLowerCase()}`
  return state === 'void' ? `${title}, void` : title
}

/**
 * Draws the seller, the title, the facts and the buyer.
 * @returns the y coordinate where the lines begin
 */
function drawHead(document: PdfDocument, text: PdfText, invoice: Printed): number {
  const { seller, buyer } = invoice
  const half = 225
  let left = page.top
  left += text.draw(seller.name, page.left, left, half, { size: 12, bold: true })
  for (const line of seller.lines) left += text.draw(line, page.left, left, half, { ...small, color: grey })

  let right = page.top
  right +=
    text.draw(titleOf(invoice), 320, right, page.right - 320, {
      size: 20,
      bold: true,
      color: invoice.state === 'void' || invoice.state === 'upcoming' ? warning : '#1a1a1a',
    }) + 8
  for (const [name, value] of factsOf(invoice)) {
    text.draw(name, 320, right, 60, { ...small, color: grey })
    right += text.draw(value, 385, right, page.right - 385, small)
  }

  let y = Math.max(left, right) + 24
  if (invoice.state === 'upcoming')
    y +=
      text.draw(previewText(invoice), page.left, y, page.right - page.left, { ...small, bold: true, color: warning }) +
      12
  y += text.draw(invoice.state === 'upcoming' ? 'FOR' : 'BILL TO', page.left, y, half, label) + 2
  y += text.draw(buyer.name, page.left, y, 380, { size: 10.5, bold: true })
  for (const line of buyer.lines) y += text.draw(line, page.left, y, 380, small)
  return drawColumnHeads(document, text, invoice, y + 26)
}

function factsOf(invoice: Printed): [string, string][] {
  const whose: [string, string][] = [
    ['Period', describeMonth(monthOf(invoice))],
    ['Tenant', invoice.tenant_name === undefined ? invoice.tenant_id : `${invoice.tenant_name} (${invoice.tenant_id})`],
  ]
  if (invoice.state === 'upcoming') return [['Usage until', describeInstant(dateOf(invoice))], ...whose]
  const voided: [string, string][] =
    invoice.voided_at === null
      ? []
      : [
          ['Void since', describeDay(new Date(invoice.voided_at))],
          ['Reason', invoice.void_reason ?? ''],
        ]
  return [['Number', invoice.number ?? 'not yet given'], ['Date', describeDay(dateOf(invoice))], ...whose, ...voided]
}

function previewText(invoice: Printed): string {
  return (
    'This is not an invoice, and no payment is due. ' +
    `It shows what ${describeMonth(monthOf(invoice))} would cost with the usage until ` +
    `${describeInstant(dateOf(invoice))} and the present plan until the month's end.`
  )
}

function drawColumnHeads(document: PdfDocument, text: PdfText, { currency }: Printed, y: number): number {
  const heads = {
    description: 'DESCRIPTION',
    quantity: 'QUANTITY',
    price: 'UNIT PRICE',
    amount: `AMOUNT (${currency})`,
  }
  for (const name of ['description', 'quantity', 'price', 'amount'] as const) {
    text.draw(heads[name], columns[name].x, y, columns[name].width, {
      ...label,
      align: name === 'description' ? 'left' : 'right',
    })
  }
  return rule(document, y + lineHeight(label) + 3, '#1a1a1a') + 5
}

function drawLines(document: PdfDocument, text: PdfText, invoice: Printed, from: number): number {
  let y = from
  const numbers: TextStyle = { ...small, align: 'right' }
  for (const [nth, line] of invoice.lines.entries()) {
    const quantity = line.quantity_text === null ? '' : grouped(line.quantity_text)
    const height = Math.max(
      text.height(line.description, columns.description.width, small),
      text.height(quantity, columns.quantity.width, numbers),
    )
    // The totals are never on a page without a line.
    const below = nth === invoice.lines.length - 1 ? 8 + totalsHeight(invoice) : 0
    if (y + height + 5 + below > page.bottom) y = drawColumnHeads(document, text, invoice, newPage(document))
    text.draw(line.description, columns.description.x, y, columns.description.width, small)
    text.draw(quantity, columns.quantity.x, y, columns.quantity.width, numbers)
    if (line.unit_price !== null)
      text.draw(money(line.unit_price, invoice), columns.price.x, y, columns.price.width, numbers)
    text.draw(money(line.amount, invoice), columns.amount.x, y, columns.amount.width, numbers)
    y = rule(document, y + height + 2, '#dddddd') + 3
  }
  return y
}

function drawTotals(document: PdfDocument, text: PdfText, invoice: Printed, from: number): number {
  const rows: [string, string][] = [
    ['Net', money(invoice.net, invoice)],
    ...invoice.taxes.map(({ name, rate, net, tax }): [string, string] => [
      `${name} ${percent(rate)} % of ${money(net, invoice)}`,
      money(tax, invoice),
    ]),
    ['Total', money(invoice.total, invoice)],
  ]
  let y = from + 8 + totalsHeight(invoice) > page.bottom ? newPage(document) : from + 8
  for (const [name, value] of rows) {
    text.draw(name, 250, y, 205, { ...small, align: 'right', color: grey })
    y += text.draw(value, columns.amount.x - 40, y, columns.amount.width + 40, { ...small, align: 'right' }) + 3
  }
  y = rule(document, y + 2, '#1a1a1a', 300) + 6
  text.draw(dueText(invoice), 250, y, 150, { ...due, align: 'right' })
  y += text.draw(`${invoice.currency} ${money(invoice.payable, invoice)}`, 400, y, page.right - 400, {
    ...due,
    align: 'right',
  })
  return y + 30
}

function dueText({ state, total }: Printed): string {
  if (state === 'upcoming') return 'So far'
  return readDecimalText(total) < 0n ? 'In your favour' : 'Amount due'
}

function totalsHeight({ taxes }: Printed): number {
  return (taxes.length + 2) * (lineHeight(small) + 3) + lineHeight(due) + 10
}

function drawNotes(document: PdfDocument, text: PdfText, { notes }: Printed, from: number): void {
  let y = from
  for (const note of notes) {
    const height = text.height(note, page.right - page.left, small)
    if (y + height > page.bottom) y = newPage(document)
    y += text.draw(note, page.left, y, page.right - page.left, small) + 2
  }
}

function drawFooters(document: PdfDocument, text: PdfText, invoice: Printed): void {
  const { count } = document.bufferedPageRange()
  for (let nth = 0; nth < count; nth++) {
    document.switchToPage(nth)
    rule(document, page.footer - 8, '#dddddd')
    text.draw(
      `${invoice.seller.name} · ${titleOf(invoice)} ${invoice.number ?? ''}`,
      page.left,
      page.footer,
      380,
      label,
    )
    text.draw(`Page ${nth + 1} of ${count}`, page.right - 90, page.footer, 90, { ...label, align: 'right' })
  }
}

function newPage(document: PdfDocument): number {
  document.addPage()
  return page.top
}

/**
 * Draws a horizontal line.
 * @returns `y`
 */
function rule(document: PdfDocument, y: number, color: string, from: number = page.left): number {
  document.moveTo(from, y).lineTo(page.right, y).lineWidth(0.5).strokeColor(color).stroke()
  return y
}

function monthOf({ month }: Printed): Date {
  const start = parseMonth(month)
  if (start === undefined) throw new Error(`Invalid month "${month}". It must be YYYY-MM.`)
  return start
}

/** Formats an amount with at least the currency's decimal places, and more where they are not zero. */
function money(text: string, { currency }: Printed): string {
  return grouped(shortDecimal(text, currencyDecimalPlaces(currency)))
}

/** Formats a rate as a percentage: 0.19 is 19. */
function percent(rate: string): string {
  return shortDecimal(decimalText(readDecimalText(rate) * 100n), 0)
}

/** Separates thousands with commas. */
function grouped(text: string): string {
  return text.replace(/^-?\d+/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ','))
}
