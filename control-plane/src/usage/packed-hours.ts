// Packs a month's closed hours into few bytes: an hour that only stores the same bytes as the hour before takes one
// byte. Pure.
//
// The format is the version (1), then these varints: the index after the last hour, and the document and file
// byte-seconds of the last hour. Then follow for each hour: flags, the number of hours skipped before it when bit 0 is
// set, and a value for each further bit, in the order of the amounts. A byte-second amount is the zigzag of its
// difference to the hour before, and absent when there is none. Any other amount is its value, and absent when it is
// zero.
import { hourMilliseconds } from '@tenantry/contract'
import { amountNames, noAmounts, type AmountName, type Amounts, type HourBucket } from './hour-bucket.ts'
import { ByteReader, unzigzag, writeVarint, zigzag } from './varint.ts'

const version = 1
const isIntegral = (name: AmountName) => name === 'documentByteSeconds' || name === 'fileByteSeconds'

interface Head {
  /** The index, from the month's start, of the first hour that may follow. */
  next: number
  last: Amounts
  /** The offset at which the hours begin. */
  body: number
}

/**
 * Appends hours of a month to those that are packed.
 * @param packed what this function has returned before, or nothing for an empty month
 * @param hours hours of that month, in order, with no amount below zero
 * @throws Error for an hour that does not come after all that are packed
 */
export function appendHours(
  packed: Uint8Array,
  month: Date,
  hours: readonly Pick<HourBucket, 'hour' | 'amounts'>[],
): Uint8Array {
  const { next: first, last: start, body } = headOf(packed)
  let next = first
  let last = start
  const added: number[] = []
  for (const { hour, amounts } of hours) {
    const index = (hour.getTime() - month.getTime()) / hourMilliseconds
    if (!Number.isInteger(index) || index < next)
      throw new Error(`The hour ${hour.toISOString()} does not follow the packed hours.`)
    writeHour(added, index - next, last, amounts)
    next = index + 1
    last = amounts
  }
  const head = [version]
  for (const value of [next, last.documentByteSeconds, last.fileByteSeconds]) writeVarint(head, value)
  return Buffer.concat([Uint8Array.from(head), packed.subarray(body), Uint8Array.from(added)])
}

/**
 * Unpacks hours.
 * @throws Error for bytes that `appendHours` did not write
 */
export function unpackHours(packed: Uint8Array, tenantId: string, month: Date): HourBucket[] {
  const hours: HourBucket[] = []
  const reader = new ByteReader(packed, headOf(packed).body)
  let index = 0
  let last = noAmounts()
  while (!reader.isAtEnd) {
    const flags = reader.small()
    if (flags % 2 === 1) index += reader.small()
    const amounts = noAmounts()
    for (const [bit, name] of amountNames.entries()) {
      const isThere = (flags & (2 << bit)) !== 0
      if (isIntegral(name)) amounts[name] = last[name] + (isThere ? unzigzag(reader.varint()) : 0n)
      else if (isThere) amounts[name] = reader.varint()
    }
    hours.push({ tenantId, hour: new Date(month.getTime() + index * hourMilliseconds), amounts })
    index++
    last = amounts
  }
  return hours
}

function writeHour(into: number[], skipped: number, last: Amounts, amounts: Amounts): void {
  let flags = skipped > 0 ? 1 : 0
  const values: bigint[] = []
  for (const [bit, name] of amountNames.entries()) {
    const value = isIntegral(name) ? zigzag(amounts[name] - last[name]) : amounts[name]
    if (value === 0n) continue
    flags |= 2 << bit
    values.push(value)
  }
  writeVarint(into, flags)
  if (skipped > 0) writeVarint(into, skipped)
  for (const value of values) writeVarint(into, value)
}

function headOf(packed: Uint8Array): Head {
  if (packed.length === 0) return { next: 0, last: noAmounts(), body: 0 }
  if (packed[0] !== version) throw new Error(`Packed hours have the unknown version ${packed[0]}.`)
  const reader = new ByteReader(packed, 1)
  const next = reader.small()
  const last = { ...noAmounts(), documentByteSeconds: reader.varint(), fileByteSeconds: reader.varint() }
  return { next, last, body: reader.at }
}
