// Writes amounts as one line of text, which is hashed, stored and exported. Pure.
import { amountNames, noAmounts, type Amounts } from './hour-bucket.ts'

/** Writes amounts as decimal digits in the order of `amountNames`, joined by commas. */
export function amountsText(amounts: Amounts): string {
  return amountNames.map((name) => amounts[name]).join(',')
}

/**
 * Reads a line of amounts.
 * @throws Error for a text that `amountsText` does not write
 */
export function parseAmounts(text: string): Amounts {
  const parts = text.split(',')
  if (parts.length !== amountNames.length || !parts.every((part) => /^-?\d+$/.test(part)))
    throw new Error(`"${text}" is not a line of amounts.`)
  const amounts = noAmounts()
  for (const [index, name] of amountNames.entries()) amounts[name] = BigInt(parts[index] ?? 0)
  return amounts
}

export function isNothing(amounts: Amounts): boolean {
  return amountNames.every((name) => amounts[name] === 0n)
}
