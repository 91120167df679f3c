// Verifies an invoice against the hours that it was made of. Pure: it needs no installation.
import { chainOf, correctionLink, type Correction, type HourBucket } from '../usage/index.ts'
import { readAdjustmentBasis } from './adjustment.ts'
import { composeInvoice, type InvoiceFacts, type MonthFacts } from './compose.ts'
import { InvoiceContent, type MonthBasis } from './invoice.ts'
import { LineText } from './line.ts'
import { parseMonth } from '../platform/months.ts'

/** Exported hours and corrections of a tenant's months, in any order. Additional ones have no effect. */
export interface ExportedUsage {
  hours: readonly HourBucket[]
  corrections: readonly Correction[]
}

/**
 * Recomputes an invoice.
 * @returns descriptions of what is wrong; empty when every figure is the same
 */
export function verifyInvoice(invoice: InvoiceContent, usage: ExportedUsage): string[] {
  const wrong: string[] = []
  const billed = startOf(invoice.month)
  const corrections = usage.corrections
    .filter(({ tenantId, billedMonth }) => tenantId === invoice.tenant_id && billedMonth <= billed)
    .toSorted((a, b) => a.number - b.number)
  wrong.push(...chainErrors(corrections))
  const months = invoice.basis.months.map((basis) => {
    const facts = toFacts(invoice.tenant_id, basis, usage.hours)
    if (facts.hours.length !== basis.usage.hours)
      wrong.push(
        `${basis.month}: the invoice was made of ${basis.usage.hours} hours, the export has ${facts.hours.length}`,
      )
    else if (chainOf(facts.previous, facts.hours) !== facts.hash)
      wrong.push(`${basis.month}: the exported hours do not have the hash that is in the invoice`)
    return facts
  })
  const [own, ...earlier] = months
  if (own === undefined || own.month.getTime() !== billed.getTime())
    return [...wrong, 'the first month of the basis is not the invoiced one']
  if (wrong.length > 0) return wrong
  const names = months.map(({ month }) => month.toISOString().slice(0, 7))
  const facts: InvoiceFacts = {
    tenantId: invoice.tenant_id,
    own,
    earlier,
    corrections: corrections.filter(({ hour }) => names.includes(hour.toISOString().slice(0, 7))),
    adjustments: (invoice.basis.adjustments ?? []).map(readAdjustmentBasis),
    lineDecimalPlaces: invoice.basis.line_places,
  }
  return differences(invoice, composeInvoice(facts, invoice))
}

/**
 * Checks that the links fit each other and their contents. The invoice's last correction determines which links it
 * needs.
 */
function chainErrors(corrections: readonly Correction[]): string[] {
  return corrections.flatMap((correction, index) => {
    const before = corrections[index - 1]
    if (correctionLink(correction.previous, correction) !== correction.hash)
      return [`correction ${correction.number} does not have its hash`]
    const follows = before?.number === correction.number - 1
    return follows && before.hash !== correction.previous
      ? [`correction ${correction.number} does not follow the one before`]
      : []
  })
}

function toFacts(
  tenantId: string,
  { month, prices, plan_periods, usage }: MonthBasis,
  hours: readonly HourBucket[],
): MonthFacts {
  return {
    month: startOf(month),
    prices,
    periods: plan_periods.map(({ plan, weaker_isolation: weakerIsolation, since, until }) => ({
      plan,
      ...(weakerIsolation === undefined ? {} : { weakerIsolation }),
      since: new Date(since),
      until: new Date(until),
    })),
    hours: hours
      .filter((bucket) => bucket.tenantId === tenantId && bucket.hour.toISOString().startsWith(month))
      .toSorted((a, b) => a.hour.getTime() - b.hour.getTime()),
    previous: usage.previous,
    hash: usage.hash,
  }
}

const lineNames = Object.keys(LineText.properties) as (keyof LineText)[]
const sumNames = ['currency', 'net', 'total', 'payable'] as const

function differences(given: InvoiceContent, computed: InvoiceContent): string[] {
  const wrong: string[] = sumNames
    .filter((name) => given[name] !== computed[name])
    .map((name) => `${name} is ${given[name]}, but ${computed[name]} was computed`)
  if (JSON.stringify(given.taxes) !== JSON.stringify(computed.taxes))
    wrong.push(`taxes are ${JSON.stringify(given.taxes)}, but ${JSON.stringify(computed.taxes)} were computed`)
  const last = JSON.stringify(computed.basis.corrections)
  if (JSON.stringify(given.basis.corrections) !== last)
    wrong.push(`the last correction is ${JSON.stringify(given.basis.corrections)}, the export has ${last}`)
  if (given.lines.length !== computed.lines.length)
    wrong.push(`there are ${given.lines.length} lines, but ${computed.lines.length} were computed`)
  for (const [nth, line] of computed.lines.entries()) {
    const shown = given.lines[nth]
    for (const name of shown === undefined ? [] : lineNames) {
      if (shown?.[name] !== line[name])
        wrong.push(`line ${nth + 1}: ${name} is ${String(shown?.[name])}, but ${String(line[name])} was computed`)
    }
  }
  return wrong
}

function startOf(month: string): Date {
  const start = parseMonth(month)
  if (start === undefined) throw new Error(`Invalid month "${month}". It must be YYYY-MM.`)
  return start
}
