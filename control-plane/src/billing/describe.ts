// Descriptions of invoice lines for people, with quantities in the units of their prices.
import type { Line } from './line.ts'
import { decimalText, divideRounded, micro } from './money.ts'
import { monthSeconds, nextMonth } from '../platform/months.ts'
import { resourceKind, unitSize } from './resources.ts'

const monthName = new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric', timeZone: 'UTC' })
const dayName = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' })

export function describeMonth(month: Date): string {
  return monthName.format(month)
}

export function describeDay(at: Date): string {
  return dayName.format(at)
}

/** Describes an instant to the minute. */
export function describeInstant(at: Date): string {
  return `${describeDay(at)}, ${at.toISOString().slice(11, 16)} UTC`
}

export function describeLine(line: Line): string {
  const text = describeCharge(line)
  return line.correction ? `Correction for ${describeMonth(line.month)}: ${text}` : text
}

function describeCharge(line: Line): string {
  if (line.adjustment !== undefined) return line.adjustment.description
  const plan = line.plan === undefined ? 'no plan' : `${line.plan} plan`
  if (line.charge === 'minimum') return `${plan}, up to the monthly minimum`
  if (line.charge === 'fee')
    return `${plan}${line.isolation === undefined ? '' : ` with ${line.isolation}`}, ${describePeriod(line)}`
  if (line.resource === undefined) return plan
  return `${resourceKind(line.resource).title}, ${plan}${describeTier(line)}`
}

function describeTier({ tier, unit }: Line): string {
  if (tier === undefined) return ''
  if (tier > 0) return tier === 1 ? '' : `, tier ${tier}`
  return unit === undefined ? ', not charged' : ', included'
}

function describePeriod({ month, from, to }: Line): string {
  if (from === undefined || to === undefined) return describeMonth(month)
  if (from <= month && to >= nextMonth(month)) return describeMonth(month)
  const instant = (at: Date) => `${at.toISOString().slice(0, 10)} ${at.toISOString().slice(11, 19)}`
  return `${instant(from)} to ${instant(to)} UTC`
}

/**
 * Returns the quantity in the unit of its price, or in the resource's default unit; undefined for lines without a
 * quantity.
 */
function quantityInUnits({ resource, unit, quantity, month }: Line): { unit: string; units: string } | undefined {
  if (resource === undefined || quantity === undefined) return undefined
  const name = unit ?? resourceKind(resource).defaultUnit
  return {
    unit: name,
    units: decimalText(divideRounded(quantity * micro, unitSize(resource, name, monthSeconds(month)))),
  }
}

/** Returns the quantity for people, e.g. `1.5 GB`, `1 request`, `2 connection-hours`. */
export function quantityText(line: Line): string | undefined {
  const quantity = quantityInUnits(line)
  if (quantity === undefined) return undefined
  const number = shortDecimal(quantity.units, 0)
  return `${number} ${quantity.unit}${number !== '1' && /(request|invocation|second|hour|month)$/.test(quantity.unit) ? 's' : ''}`
}

/** Returns a decimal text without trailing zeros, but with at least the given number of decimal places. */
export function shortDecimal(text: string, minDecimalPlaces: number): string {
  const [whole = '', fraction = ''] = text.split('.')
  const significant = fraction.replace(/0+$/, '').padEnd(minDecimalPlaces, '0')
  return significant === '' ? whole : `${whole}.${significant}`
}
