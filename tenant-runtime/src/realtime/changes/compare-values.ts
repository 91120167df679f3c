// Compares values of records as Postgres does, from their JSON. Pure.

/** A value of a record: JSON, in which numbers that JavaScript cannot represent are raw. */
export type RecordValue = unknown

/** Parses a record. Numbers that JavaScript cannot represent exactly keep their digits. */
export function parseRecord(text: string): Record<string, RecordValue> {
  return JSON.parse(text, function reviver(_key, value: unknown, context?: { source?: string }) {
    const source = context?.source
    if (typeof value !== 'number' || source === undefined || String(value) === source) return value
    return JSON.rawJSON(source)
  }) as Record<string, RecordValue>
}

/** Returns the text of a value as `::text` shows it; undefined for null. */
export function textOf(value: RecordValue): string | undefined {
  if (value === null || value === undefined) return undefined
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Compares two values that are not null. The result is negative, 0 or positive. */
export function compareValues(one: RecordValue, other: RecordValue): number {
  if (typeof one === 'number' && typeof other === 'number') return one - other
  const [a, b] = [digitsOf(one), digitsOf(other)]
  if (a !== undefined && b !== undefined) return compareDecimals(a, b)
  return compareTexts(textOf(one) ?? '', textOf(other) ?? '')
}

/** Compares texts by their bytes, as Postgres does with the collation C. */
function compareTexts(one: string, other: string): number {
  if (one === other) return 0
  // The order of bytes differs from that of UTF-16 only for characters outside of the basic plane.
  if (surrogates.test(one) || surrogates.test(other)) return Buffer.compare(Buffer.from(one), Buffer.from(other))
  return one < other ? -1 : 1
}

const surrogates = /[\ud800-\udfff]/

/** Returns the digits of a number; undefined for anything else. */
function digitsOf(value: RecordValue): string | undefined {
  if (typeof value === 'number') return String(value)
  return JSON.isRawJSON(value) ? value.rawJSON : undefined
}

const decimalForm = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

/** Compares two decimal numbers exactly. Very large exponents are compared as floating-point numbers. */
function compareDecimals(one: string, other: string): number {
  const [a, b] = [scaled(one), scaled(other)]
  if (a === undefined || b === undefined) return Number(one) - Number(other)
  const scale = Math.max(a.scale, b.scale)
  const difference = a.digits * 10n ** BigInt(scale - a.scale) - b.digits * 10n ** BigInt(scale - b.scale)
  return difference < 0n ? -1 : difference > 0n ? 1 : 0
}

const maxExponent = 400

/** Returns a number as an integer divided by a power of ten. */
function scaled(text: string): { digits: bigint; scale: number } | undefined {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = decimalForm.exec(text) ?? []
  const scale = fraction.length - Number(exponent)
  if (whole === '' || Math.abs(scale) > maxExponent + fraction.length) return undefined
  const digits = BigInt(`${sign}${whole}${fraction}`)
  return scale >= 0 ? { digits, scale } : { digits: digits * 10n ** BigInt(-scale), scale: 0 }
}
