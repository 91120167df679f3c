// The PDF of an invoice: its figures equal those of the JSON, and names of any length and script fit.
import t from 'tap'
import { chanceOf } from '#test/simulation/chance.ts'
import { priceListFor } from '#control-plane/billing/billing-config.ts'
import { composeInvoice } from '#control-plane/billing/compose.ts'
import { toInvoiceBody, toUpcomingBody, type InvoiceBody } from '#control-plane/billing/invoice-body.ts'
import { invoicePdf } from '#control-plane/billing/invoice-pdf.ts'
import { parseDecimal } from '#control-plane/billing/money.ts'
import { loadPdfFonts } from '#control-plane/billing/pdf-fonts.ts'
import { effort, seed } from '#test/support/effort.ts'
import { pdfChunks, pdfRows } from './support/pdf-chunks.ts'
import { billingConfig } from './support/prices.ts'
import { simulateYear, type SimulatedYear } from './support/year.ts'

const fonts = await loadPdfFonts()

function invoiceParts(
  year: SimulatedYear,
  nth: number,
  buyer: { name: string; lines: string[] } = { name: 'A customer', lines: [] },
) {
  const facts = year.months.slice(0, nth + 1).map((closed) => {
    const list = priceListFor(billingConfig, closed.month)
    if (list === undefined) throw new Error('no price list')
    return { ...closed, prices: list.text, periods: year.periods }
  })
  const own = facts[nth]
  if (own === undefined) throw new Error(`The year has no month ${nth}.`)
  const content = composeInvoice(
    {
      tenantId: year.tenantId,
      own,
      earlier: facts.slice(0, nth),
      corrections: facts.flatMap(({ corrections }) => corrections),
      adjustments: year.adjustments.filter(({ billedMonth }) => billedMonth.getTime() === own.month.getTime()),
      lineDecimalPlaces: 2,
    },
    { seller: billingConfig.seller, buyer, notes: ['Please pay within 14 days.'] },
  )
  return { month: own.month, content }
}

function invoiceOf(year: SimulatedYear, nth: number, buyer?: { name: string; lines: string[] }): InvoiceBody {
  const { month, content } = invoiceParts(year, nth, buyer)
  const at = new Date('2026-09-01T03:00:00Z')
  return toInvoiceBody({
    id: '',
    tenantId: year.tenantId,
    month,
    state: 'final',
    number: 'NL-000042',
    content,
    createdAt: at,
    finalAt: at,
    voidedAt: undefined,
    voidReason: undefined,
  })
}

const millionths = (text: string) => {
  const amount = parseDecimal(text.replace('-', '').replaceAll(',', ''))
  if (amount === undefined) throw new Error(`Invalid amount "${text}".`)
  return text.startsWith('-') ? -amount : amount
}
const exact = (text: string) => BigInt(text.replace('.', ''))

const years = effort({ small: 2, full: 20 })
t.comment(`seed ${seed}`)
for (let nth = 0; nth < years; nth++) {
  t.test(
    `Year ${nth}: amounts, unit prices, quantities, taxes and totals equal those of the JSON to the last digit`,
    async (t) => {
      const year = simulateYear(chanceOf(seed + nth).next, 't_0123456789abcdef0123')
      for (const month of [3, 6, 9, 11]) {
        const invoice = invoiceOf(year, month)
        const rows = pdfRows(await invoicePdf(invoice, fonts))
        const from = rows.findIndex(([first]) => first === 'DESCRIPTION')
        const to = rows.findIndex(([first]) => first === 'Net')
        // The first row of a line ends with its amount. The next rows contain text that did not fit.
        const table = rows
          .slice(from + 1, to)
          .filter((row) => /^-?[\d,]+\.\d{2,6}$/.test(row.at(-1) ?? '') && row.length > 1)
        t.equal(table.length, invoice.lines.length, `${invoice.month}: lines`)
        t.same(
          table.map((row) => millionths(row.at(-1) ?? '')),
          invoice.lines.map(({ amount }) => exact(amount)),
          `${invoice.month}: amounts`,
        )
        const priced = invoice.lines.flatMap(({ unit_price: price }, at) => (price === null ? [] : [{ at, price }]))
        t.same(
          priced.map(({ at }) => millionths(table[at]?.at(-2) ?? '')),
          priced.map(({ price }) => exact(price)),
          `${invoice.month}: unit prices`,
        )
        const measured = invoice.lines.flatMap(({ quantity_text: quantity, unit_price: price }, at) =>
          quantity === null ? [] : [{ at, position: price === null ? -2 : -3, quantity }],
        )
        t.same(
          measured.map(({ at, position }) => table[at]?.at(position)?.split(' ')[0]?.replaceAll(',', '')),
          measured.map(({ quantity }) => quantity.split(' ')[0]),
          `${invoice.month}: quantities`,
        )
        t.equal(millionths(rows[to]?.at(-1) ?? ''), exact(invoice.net))
        t.same(
          invoice.taxes.map((_, at) => millionths(rows[to + 1 + at]?.at(-1) ?? '')),
          invoice.taxes.map(({ tax }) => exact(tax)),
        )
        t.equal(millionths(rows[to + 1 + invoice.taxes.length]?.at(-1) ?? ''), exact(invoice.total))
        const due = rows.find(([first]) => first === 'Amount due' || first === 'In your favour')
        t.equal(due?.at(-1)?.replaceAll(',', ''), `EUR ${invoice.payable}`)
      }
    },
  )
}

t.test('Each page of a preview states that it is not an invoice, and no page requests payment', async (t) => {
  const { content } = invoiceParts(simulateYear(chanceOf(seed).next, 't_0123456789abcdef0123'), 10)
  const long = {
    ...content,
    buyer: { name: 'A customer', lines: Array.from({ length: 10 }, (_, nth) => `Line ${nth}`) },
    lines: [...content.lines, ...content.lines, ...content.lines],
  }
  const chunks = pdfChunks(
    await invoicePdf(toUpcomingBody({ content: long, asOf: new Date('2026-11-21T14:00:00Z') }), fonts),
  )
  const pages = Math.max(...chunks.map(({ page }) => page)) + 1
  t.ok(pages > 1)
  for (let page = 0; page < pages; page++)
    t.ok(
      chunks.some((chunk) => chunk.page === page && chunk.text.includes('Preview, not an invoice')),
      `page ${page}`,
    )
  const text = chunks.map((chunk) => chunk.text).join(' ')
  for (const words of ['This is not an invoice', '21 November 2026, 14:00 UTC', 'So far'])
    t.ok(text.includes(words), words)
  for (const words of ['Amount due', 'In your favour', 'BILL TO', 'Please pay', 'Number'])
    t.notOk(text.includes(words), words)
})

t.test('The same invoice gives the same bytes', async (t) => {
  const invoice = invoiceOf(simulateYear(chanceOf(seed).next, 't_0123456789abcdef0123'), 5)
  t.ok((await invoicePdf(invoice, fonts)).equals(await invoicePdf(invoice, fonts)))
})

t.test('Names in other scripts are extracted as text, and all text is within the page', async (t) => {
  const japanese = ['東京都千代田区丸の内一丁目', 'さくらビル']
  const lines = ['Αθήνα', 'Москва', ...japanese, 'x'.repeat(190), '北京市'.repeat(60)]
  const file = await invoicePdf(
    invoiceOf(simulateYear(chanceOf(seed).next, 't_0123456789abcdef0123'), 11, {
      name: '北京云端数据科技有限公司',
      lines,
    }),
    fonts,
  )
  const chunks = pdfChunks(file)
  const text = chunks.map((chunk) => chunk.text).join('')
  for (const line of ['北京云端数据科技有限公司', ...lines]) t.ok(text.includes(line), line.slice(0, 20))
  t.notOk(text.includes('\ufffd'))
  t.ok(chunks.every(({ x, y }) => x >= 50 && x < 545 && y > 20 && y < 800))
  const pages = Math.max(...chunks.map(({ page }) => page)) + 1
  t.ok(pages > 1)
  for (let page = 0; page < pages; page++)
    t.ok(chunks.some((chunk) => chunk.page === page && chunk.text === `Page ${page + 1} of ${pages}`))
})

t.test('Hebrew and Arabic words run from right to left, other words among them from left to right', async (t) => {
  const invoice = invoiceOf(simulateYear(chanceOf(seed).next, 't_0123456789abcdef0123'), 5, {
    name: 'x',
    lines: ['חברת ABC Ltd ישראל', 'Tel תל אביב Aviv'],
  })
  const rows = pdfRows(await invoicePdf(invoice, fonts)).map((row) =>
    row.map((chunk) => chunk.trim()).filter((chunk) => chunk !== ''),
  )
  const order = (row: string[]) => row.map((chunk) => Array.from(chunk).sort().join(''))
  const letters = (text: string) => Array.from(text).sort().join('')
  t.ok(rows.some((row) => JSON.stringify(order(row)) === JSON.stringify(['ישראל', 'ABC Ltd', 'חברת'].map(letters))))
  t.ok(rows.some((row) => JSON.stringify(order(row)) === JSON.stringify(['Tel', 'אביב', 'תל', 'Aviv'].map(letters))))
})
