// Money and other decimal texts as whole numbers of millionths. Nothing is ever a floating-point number.

/** Millionths in one unit of the currency. */
export const micro = 1_000_000n

/** The decimal places of an amount that is not rounded. */
export const exactDecimalPlaces = 6

/** Returns the smallest amount with the given decimal places, in millionths: 10000 for cents. */
export function smallestAmount(decimalPlaces: number): bigint {
  return 10n ** BigInt(exactDecimalPlaces - decimalPlaces)
}

/**
 * Reads a decimal text: `"12.5"` is 12500000 millionths.
 * @returns undefined unless the text is a plain decimal number with at most six decimal places
 */
export function parseDecimal(text: string): bigint | undefined {
  const match = /^(0|[1-9]\d{0,14})(?:\.(\d{1,6}))?$/.exec(text)
  if (match?.[1] === undefined) return undefined
  return BigInt(match[1]) * micro + BigInt((match[2] ?? '').padEnd(6, '0'))
}

/** Writes millionths as a decimal text with exactly six decimal places, so that equal amounts are equal texts. */
export function decimalText(millionths: bigint): string {
  const size = millionths < 0n ? -millionths : millionths
  return `${millionths < 0n ? '-' : ''}${size / micro}.${String(size % micro).padStart(6, '0')}`
}

/**
 * Reads a text that `decimalText` wrote.
 * @throws Error for any other text
 */
export function readDecimalText(text: string): bigint {
  const match = /^(-?)(\d+)\.(\d{6})$/.exec(text)
  if (match?.[2] === undefined || match[3] === undefined)
    throw new Error(`"${text}" is not a decimal number with six decimal places.`)
  const size = BigInt(match[2]) * micro + BigInt(match[3])
  return match[1] === '-' ? -size : size
}

/**
 * Divides and rounds to the nearest whole number, halves away from zero.
 * @param divisor more than 0
 */
export function divideRounded(dividend: bigint, divisor: bigint): bigint {
  if (dividend < 0n) return -divideRounded(-dividend, divisor)
  return (dividend * 2n + divisor) / (divisor * 2n)
}

/** Divides millionths and rounds the quotient once, to a multiple of `step`. */
export function divideToStep(dividend: bigint, divisor: bigint, step: bigint): bigint {
  return divideRounded(dividend, divisor * step) * step
}

/** Rounds an amount to whole minor units of the currency (cents) and writes it with the currency's decimal places. */
export function payableText(millionths: bigint, decimalPlaces: number): string {
  const minor = divideRounded(millionths, smallestAmount(decimalPlaces))
  const digits = String(minor < 0n ? -minor : minor).padStart(decimalPlaces + 1, '0')
  const whole = digits.slice(0, digits.length - decimalPlaces)
  return `${minor < 0n ? '-' : ''}${whole}${decimalPlaces === 0 ? '' : `.${digits.slice(-decimalPlaces)}`}`
}

const knownDecimalPlaces = new Map<string, number>()

/** Returns the decimal places of a currency's minor unit (ISO 4217): 2 for EUR, 0 for JPY. */
export function currencyDecimalPlaces(currency: string): number {
  const known =
    knownDecimalPlaces.get(currency) ??
    new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions().maximumFractionDigits ??
    2
  knownDecimalPlaces.set(currency, known)
  return known
}
