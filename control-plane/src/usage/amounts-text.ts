// Writes amounts as one line of text, which is hashed, stored and exported. Pure.
import { amountNames, noAmounts, type Amounts } from './hour-bucket.ts'

/** The number of amounts of the first version of the ledger. Later amounts are only written when they are not 0. */
const firstAmounts = 10

/**
 * Writes amounts as decimal digits in the order of `amountNames`, joined by commas. Those after the tenth are left out while
 * they and all that follow are 0, so that hours of earlier versions have the same text.
 */
export function amountsText(amounts: Amounts): string {
  const last = amountNames.findLastIndex((name) => amounts[name] !== 0n)
  const written = amountNames.slice(0, Math.max(firstAmounts, last + 1))
  return written.map((name) => amounts[name]).join(',')
}

/**
 * Reads a line of amounts.
 * @throws Error for a text that `amountsText` does not write
 */
export function parseAmounts(text: string): Amounts {
  const parts = text.split(',')
  const isShortest = parts.length === firstAmounts || parts.at(-1) !== '0'
  if (
    !isShortest ||
    parts.length < firstAmounts ||
    parts.length > amountNames.length ||
    !parts.every((part) => /^-?\d+$/.test(part))
  )
    throw new Error(`"${text}" is not a line of amounts.`)
  const amounts = noAmounts()
  for (const [index, name] of amountNames.entries()) amounts[name] = BigInt(parts[index] ?? 0)
  return amounts
}

export function isNothing(amounts: Amounts): boolean {
  return amountNames.every((name) => amounts[name] === 0n)
}
