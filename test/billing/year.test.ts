// A simulated year with plan changes, suspensions, late counts and manual adjustments. Hours, lines and a second computation agree.
import t from 'tap'
import { chanceOf } from '#test/simulation/chance.ts'
import { priceListFor } from '#control-plane/billing/billing-config.ts'
import { composeInvoice, type InvoiceFacts, type MonthFacts } from '#control-plane/billing/compose.ts'
import { readLine } from '#control-plane/billing/line.ts'
import { decimalText, readDecimalText } from '#control-plane/billing/money.ts'
import { resourceKind, resources } from '#control-plane/billing/resources.ts'
import { verifyInvoice } from '#control-plane/billing/verify.ts'
import type { ClosedMonth } from '#control-plane/usage/closed-usage.ts'
import { effort, seed } from '#test/support/effort.ts'
import { billingConfig } from './support/prices.ts'
import { cent, referenceCost } from './support/reference.ts'
import { simulateYear, type SimulatedYear } from './support/year.ts'

const letterhead = { seller: billingConfig.seller, buyer: { name: 'A customer', lines: [] }, notes: [] }

function monthFacts({ periods }: SimulatedYear, { month, hours, previous, hash }: ClosedMonth): MonthFacts {
  const list = priceListFor(billingConfig, month)
  if (list === undefined) throw new Error('no price list')
  return { month, prices: list.text, periods, hours, previous, hash }
}

function factsOf(year: SimulatedYear, closed: ClosedMonth): InvoiceFacts {
  const nameOf = (at: Date) => at.toISOString().slice(0, 7)
  const corrected = new Set([nameOf(closed.month), ...closed.corrections.map(({ hour }) => nameOf(hour))])
  const earlier = year.months.filter(({ month }) => month < closed.month && corrected.has(nameOf(month)))
  const corrections = year.months
    .filter(({ month }) => month <= closed.month)
    .flatMap((month) => month.corrections.filter(({ hour }) => corrected.has(nameOf(hour))))
  return {
    tenantId: year.tenantId,
    own: monthFacts(year, closed),
    earlier: earlier.map((month) => monthFacts(year, month)),
    corrections,
    adjustments: adjustmentsOf(year, closed.month),
    lineDecimalPlaces: 2,
  }
}

function adjustmentsOf({ adjustments }: SimulatedYear, billed: Date) {
  return adjustments.filter(({ billedMonth }) => billedMonth.getTime() === billed.getTime())
}

/** Step of exact amounts: one millionth. */
const exact = 1n
const inCents = (amount: bigint) =>
  (((amount < 0n ? -1n : 1n) * ((amount < 0n ? -amount : amount) + cent / 2n)) / cent) * cent
const sumOf = (amounts: readonly { amount: bigint }[], step: bigint) =>
  amounts.reduce((sum, { amount }) => sum + (step === cent ? inCents(amount) : amount), 0n)

/** Returns a month's net cost as known when `billed` was invoiced, with lines rounded to multiples of `step`. */
function costAsOf(year: SimulatedYear, { month, hours }: ClosedMonth, billed: Date, step: bigint): bigint {
  const late = year.months
    .flatMap(({ corrections }) => corrections)
    .filter(
      ({ hour, billedMonth }) =>
        billedMonth <= billed && hour.toISOString().slice(0, 7) === month.toISOString().slice(0, 7),
    )
  return referenceCost(month, year.periods, [...hours, ...late], step)
}

const tenants = effort({ small: 4, full: 60 })
t.comment(`seed ${seed}, ${tenants} tenants`)

for (let nth = 0; nth < tenants; nth++) {
  t.test(
    `Tenant ${nth}: the sum of the hours equals the sum of the lines, and each total equals a second computation`,
    async (t) => {
      const year = simulateYear(chanceOf(seed + nth).next, `t_${String(nth).padStart(20, '0')}`)
      const invoices = year.months.map((month) => composeInvoice(factsOf(year, month), letterhead))
      const lines = invoices.flatMap((invoice) => invoice.lines.map(readLine))

      for (const resource of resources) {
        const inHours = year.months
          .flatMap(({ hours, corrections }) => [...hours, ...corrections])
          .reduce((sum, { amounts }) => sum + resourceKind(resource).amount(amounts), 0n)
        const inLines = lines
          .filter((line) => line.resource === resource)
          .reduce((sum, { quantity }) => sum + (quantity ?? 0n), 0n)
        t.equal(inLines, inHours, resource)
        t.ok(inHours > 0n, `the year contains usage of ${resource}`)
      }

      const december = new Date('2026-12-01T00:00:00Z')
      for (const step of [exact, cent]) {
        const used = year.months.reduce((sum, month) => sum + costAsOf(year, month, december, step), 0n)
        const billed = lines.reduce((sum, line) => sum + (step === cent ? line.amount : line.exact), 0n)
        t.equal(billed, used + sumOf(year.adjustments, step), `the whole year in multiples of ${step} millionths`)
      }
      t.same(
        lines.filter(({ amount }) => amount % cent !== 0n),
        [],
        'each line is in cents',
      )
      t.ok(
        lines.some(({ isolation }) => isolation !== undefined),
        'some lines have weaker isolation than the plan',
      )
      t.same(
        lines.flatMap(({ adjustment }) => adjustment?.id ?? []),
        year.adjustments.map(({ id }) => id),
        'each adjustment is on one line',
      )
      for (const [index, invoice] of invoices.entries()) {
        const billed = new Date(Date.UTC(2026, index, 1))
        const before = index === 0 ? new Date(0) : new Date(Date.UTC(2026, index - 1, 1))
        const costOf = (step: bigint) =>
          year.months
            .slice(0, index + 1)
            .reduce(
              (sum, month, at) =>
                sum + costAsOf(year, month, billed, step) - (at < index ? costAsOf(year, month, before, step) : 0n),
              0n,
            )
        const own = costOf(cent) + sumOf(adjustmentsOf(year, billed), cent)
        t.equal(readDecimalText(invoice.net), own, `net of ${invoice.month}`)
        const exactNet = invoice.lines.reduce((sum, { exact_amount: text = '' }) => sum + readDecimalText(text), 0n)
        t.equal(
          exactNet,
          costOf(exact) + sumOf(adjustmentsOf(year, billed), exact),
          `exact amounts of ${invoice.month}`,
        )
        const byRate = new Map<string, bigint>()
        for (const { tax_rate: rate, amount } of invoice.lines)
          byRate.set(rate, (byRate.get(rate) ?? 0n) + readDecimalText(amount))
        const taxes = [...byRate].map(([rate, net]) => {
          const [size, sign] = net < 0n ? [-net, -1n] : [net, 1n]
          return sign * ((2n * size * readDecimalText(rate) + 1_000_000n * cent) / (2_000_000n * cent)) * cent
        })
        t.equal(invoice.total, decimalText(taxes.reduce((sum, tax) => sum + tax, own)), `total of ${invoice.month}`)
        t.equal(
          invoice.lines.reduce((sum, { amount }) => sum + readDecimalText(amount), 0n),
          readDecimalText(invoice.net),
        )
      }
      t.ok(
        lines.some(({ correction }) => correction),
        'the year contains corrections',
      )
      t.same(
        invoices.flatMap((invoice) =>
          verifyInvoice(invoice, {
            hours: year.months.flatMap(({ hours }) => hours),
            corrections: year.months.flatMap(({ corrections }) => corrections),
          }),
        ),
        [],
      )
    },
  )
}
