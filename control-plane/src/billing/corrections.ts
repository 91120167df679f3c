// Corrections of earlier months' invoices, as lines of a later one. Pure.
import { chargeKey, type Line } from './line.ts'

/**
 * Returns the lines that turn what a month's invoices have billed so far into what is now known to be right. Empty when
 * they are equal.
 */
export function correctionLines(now: readonly Line[], before: readonly Line[]): Line[] {
  const differences = new Map<string, Line>()
  const add = (line: Line, sign: 1n | -1n) => {
    const key = chargeKey(line)
    const sum = differences.get(key)
    differences.set(key, {
      ...line,
      correction: true,
      quantity: line.quantity === undefined ? undefined : (sum?.quantity ?? 0n) + sign * line.quantity,
      amount: (sum?.amount ?? 0n) + sign * line.amount,
      exact: (sum?.exact ?? 0n) + sign * line.exact,
    })
  }
  for (const line of now) add(line, 1n)
  for (const line of before) add(line, -1n)
  return [...differences.values()].filter(
    ({ quantity, amount, exact }) => amount !== 0n || exact !== 0n || (quantity ?? 0n) !== 0n,
  )
}
