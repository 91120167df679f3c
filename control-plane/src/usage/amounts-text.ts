// Amounts as one line of text: what is hashed, stored and exported. Pure.
import { amountNames, noAmounts, type Amounts } from './hour-bucket.ts'

/** Decimal digits in the order of `amountNames`, joined by commas. */
export function amountsText(amounts: Amounts): string {
  return amountNames.map((name) => amounts[name]).join(',')
}

/** @throws Error for what `amountsText` doesn't make */
export function parseAmounts(text: string): Amounts {
  const parts = text.split(',')
  if (parts.length !== amountNames.length || !parts.every((part) => /^-?\d+$/.test(part)))
    throw new Error(`"${text}" is no line of amounts`)
  const amounts = noAmounts()
  for (const [index, name] of amountNames.entries()) amounts[name] = BigInt(parts[index] ?? 0)
  return amounts
}

export function isNothing(amounts: Amounts): boolean {
  return amountNames.every((name) => amounts[name] === 0n)
}
