// Money and other decimal texts as whole numbers of millionths; nothing here is ever a floating-point number.

/** Millionths of a unit of the currency in one unit. */
export const micro = 1_000_000n

/** Decimal places of an amount that is not rounded. */
export const exactPlaces = 6

/** The smallest amount of so many decimal places, in millionths: 10000 for cents. */
export function smallestAmount(slots: number): bigint {
  return 10n ** BigInt(exactPlaces - slots)
}

/**
 * `"12.5"` as 12500000 millionths.
 * @returns undefined for what is no plain decimal number of at most six decimal places
 */
export function parseDecimal(text: string): bigint | undefined {
  const match = /^(0|[1-9]\d{0,14})(?:\.(\d{1,6}))?$/.exec(text)
  if (match?.[1] === undefined) return undefined
  return BigInt(match[1]) * micro + BigInt((match[2] ?? '').padEnd(6, '0'))
}

/** Millionths as a decimal text with exactly six places, so that equal amounts are equal texts. */
export function decimalText(millionths: bigint): string {
  const size = millionths < 0n ? -millionths : millionths
  return `${millionths < 0n ? '-' : ''}${size / micro}.${String(size % micro).padStart(6, '0')}`
}

/** The text of `decimalText` read back. @throws Error when it is not one */
export function readDecimalText(text: string): bigint {
  const match = /^(-?)(\d+)\.(\d{6})$/.exec(text)
  if (match?.[2] === undefined || match[3] === undefined)
    throw new Error(`"${text}" is no decimal number with six places`)
  const size = BigInt(match[2]) * micro + BigInt(match[3])
  return match[1] === '-' ? -size : size
}

/** Rounded to the nearest whole number, halves away from zero. @param divisor more than 0 */
export function divideRounded(dividend: bigint, divisor: bigint): bigint {
  if (dividend < 0n) return -divideRounded(-dividend, divisor)
  return (dividend * 2n + divisor) / (divisor * 2n)
}

/** A quotient in millionths, rounded once to a multiple of `step`. */
export function divideToStep(dividend: bigint, divisor: bigint, step: bigint): bigint {
  return divideRounded(dividend, divisor * step) * step
}

/** What is paid: whole minor units of the currency (cents), as a decimal text with the currency's places. */
export function payableText(millionths: bigint, slots: number): string {
  const minor = divideRounded(millionths, smallestAmount(slots))
  const digits = String(minor < 0n ? -minor : minor).padStart(slots + 1, '0')
  const whole = digits.slice(0, digits.length - slots)
  return `${minor < 0n ? '-' : ''}${whole}${slots === 0 ? '' : `.${digits.slice(-slots)}`}`
}

const slots = new Map<string, number>()

/** Decimal places of a currency's minor unit (ISO 4217): 2 for EUR, 0 for JPY. */
export function currencyPlaces(currency: string): number {
  const known =
    slots.get(currency) ??
    new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions().maximumFractionDigits ??
    2
  slots.set(currency, known)
  return known
}
