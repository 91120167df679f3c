// What the invoice of a month did not know yet, as lines of a later one. Pure.
import { positionOf, type Line } from './line.ts'

/**
 * The difference between what a month costs as it is known now and as it was known to the invoices before. Nothing
 * when they are equal.
 */
export function correctionLines(now: readonly Line[], before: readonly Line[]): Line[] {
  const differences = new Map<string, Line>()
  const add = (line: Line, sign: 1n | -1n) => {
    const location = positionOf(line)
    const sum = differences.get(location)
    differences.set(location, {
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
