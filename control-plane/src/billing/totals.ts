// Sums and taxes of an invoice's lines.
import type { Line } from './line.ts'
import { divideToStep, micro } from './money.ts'

/** The sums of an invoice, in millionths of the currency's unit. */
export interface Totals {
  net: bigint
  /**
   * The taxes by rate (millionths), rising. Each is rounded once, over all lines of its rate, to the lines' decimal
   * places.
   */
  taxes: { rate: bigint; net: bigint; tax: bigint }[]
  total: bigint
}

/**
 * Adds up an invoice's lines.
 * @param step the smallest amount, in millionths
 */
export function totalsOf(lines: readonly Line[], step: bigint): Totals {
  const nets = new Map<bigint, bigint>()
  for (const { taxRate, amount } of lines) nets.set(taxRate, (nets.get(taxRate) ?? 0n) + amount)
  const taxes = [...nets]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([rate, net]) => ({ rate, net, tax: divideToStep(net * rate, micro, step) }))
  const net = lines.reduce((sum, { amount }) => sum + amount, 0n)
  return { net, taxes, total: taxes.reduce((sum, { tax }) => sum + tax, net) }
}
