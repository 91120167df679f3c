// Formats numbers without rounding them: each digit of the API is shown.

/** Groups the digits of a whole number: 1234567 becomes 1,234,567. Amounts in strings stay exact at any size. */
export function wholeNumber(value: number | string | bigint): string {
  const [whole = '', fraction] = String(value).split('.')
  const grouped = whole.replaceAll(/\B(?=(?:\d{3})+$)/g, ',')
  return fraction === undefined ? grouped : `${grouped}.${fraction}`
}

const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB']

/** Returns a short text of a size, in addition to its exact bytes: 25473 becomes 25.5 kB. */
export function shortBytes(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000
    unit++
  }
  return unit === 0 ? `${value} B` : `${Number(value.toPrecision(3))} ${units[unit] ?? ''}`
}

/** Returns the exact bytes of a size: 25473 becomes 25,473 bytes. */
export function exactBytes(bytes: number | string): string {
  return `${wholeNumber(bytes)} ${String(bytes) === '1' ? 'byte' : 'bytes'}`
}

/** Returns the used share of a limit in whole percent, rounded down; undefined for an unlimited one. */
export function percentOf(used: number, limit: number | null): number | undefined {
  if (limit === null) return undefined
  return limit === 0 ? 100 : Math.floor((used * 100) / limit)
}

/** Returns an amount of money as an invoice shows it, such as 2.69 EUR, without digits that are zero after the cents. */
export function money(amount: string, currency: string): string {
  const [whole = '0', fraction = ''] = amount.split('.')
  const cents = fraction.replace(/0+$/, '').padEnd(2, '0')
  return `${wholeNumber(whole)}.${cents} ${currency}`
}

/** Returns a rate of at most six decimal places in percent: 0.070000 becomes 7. */
export function percentOfRate(rate: string): string {
  return String(Number((Number(rate) * 100).toFixed(4)))
}

/** Adds whole numbers in strings exactly. */
export function sumOf(amounts: readonly (string | undefined)[]): string {
  return String(amounts.reduce((sum, amount) => sum + BigInt(amount ?? '0'), 0n))
}
