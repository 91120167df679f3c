// Posts a tenant's counts: as closed hours where no later hour is closed, else as corrections. Pure.
import { nextMonth, startOfMonth } from '../platform/months.ts'
import { isNothing } from './amounts-text.ts'
import type { Correction } from './closed-usage.ts'
import { correctionLink, hourLink } from './hash-chain.ts'
import { addAmounts, joinAmounts, noAmounts, type Amounts } from './hour-bucket.ts'
import { amountOf, isBrokenDown, type CellKey } from './meters.ts'
import { addToCell, type Cells } from './packed-cells.ts'
import { appendHours, unpackHours } from './packed-hours.ts'

/** A month that is not closed. */
export interface OpenMonth {
  month: Date
  /** The packed hours (see `packed-hours.ts`). */
  hours: Uint8Array
  /** The totals of the hours and of the corrections that are billed with this month. */
  totals: Amounts
  cells: Cells
  previous: string
  hash: string
}

export interface TenantPosting {
  tenantId: string
  /** The head of the chain of hours. `correctionsHash` is the head of the chain of corrections. */
  hash: string
  correctionsHash: string
  /** The number of the last correction. */
  corrections: number
  lastHour: Date | undefined
  /** The end of the closed months. */
  closedUntil: Date | undefined
  /** The months that the ledger has from the first hour of the counts on, in order. */
  months: readonly OpenMonth[]
  /** The corrections of hours in open months. */
  corrected: readonly Pick<Correction, 'hour' | 'amounts'>[]
}

/** The change of a counter since it was last posted. */
export interface Count {
  hour: Date
  key: CellKey
  value: bigint
}

export interface Posted {
  posting: TenantPosting
  /** The changed and new months. */
  months: OpenMonth[]
  corrections: Correction[]
}

/**
 * Posts counts.
 * @param at the time of posting
 */
export function postCounts(before: TenantPosting, counts: readonly Count[], at: Date): Posted {
  const months = new Map(before.months.map((month) => [month.month.getTime(), month]))
  const changed = new Set<number>()
  const corrections: Correction[] = []
  let posting = before

  const open = (month: Date): OpenMonth => {
    // A skipped month is, in the chain, before the first later month that has hours.
    const later = [...months.values()]
      .filter((other) => other.month > month && hasHours(other))
      .sort((a, b) => a.month.getTime() - b.month.getTime())[0]
    const hash = later?.previous ?? posting.hash
    return (
      months.get(month.getTime()) ?? {
        month,
        hours: new Uint8Array(),
        totals: noAmounts(),
        cells: new Map(),
        previous: hash,
        hash,
      }
    )
  }
  const put = (month: OpenMonth) => {
    months.set(month.month.getTime(), month)
    changed.add(month.month.getTime())
  }

  for (const { hour, amounts, cells } of byHour(counts)) {
    const month = startOfMonth(hour)
    const isOpen = posting.closedUntil === undefined || month >= posting.closedUntil
    if (isOpen && cells.length > 0) put(withCells(open(month), cells))
    if (isNothing(amounts)) continue
    if (isOpen && (posting.lastHour === undefined || hour > posting.lastHour)) {
      const hash = hourLink(posting.hash, { tenantId: posting.tenantId, hour, amounts })
      const into = open(month)
      const previous = hasHours(into) ? into.previous : posting.hash
      put({
        ...into,
        hours: appendHours(into.hours, month, [{ hour, amounts }]),
        totals: joinAmounts(into.totals, amounts),
        previous,
        hash,
      })
      posting = { ...posting, hash, lastHour: hour }
      continue
    }
    const correction = correct(posting, {
      hour,
      amounts,
      billedMonth: isOpen ? month : (posting.closedUntil ?? month),
      recordedAt: at,
    })
    corrections.push(correction)
    if (isOpen) put(withCorrection(posting, open(month), correction))
    posting = {
      ...posting,
      corrections: correction.number,
      correctionsHash: correction.hash,
      corrected: [...posting.corrected, correction],
    }
  }
  return {
    posting,
    months: [...months.values()].filter(({ month }) => changed.has(month.getTime())),
    corrections,
  }
}

/** Whether the month has hours. The position in the chain of a month without any is not fixed before it is closed. */
function hasHours({ hours }: OpenMonth): boolean {
  return hours.length > 0
}

/** Groups counts by hour, in order. */
function byHour(counts: readonly Count[]): { hour: Date; amounts: Amounts; cells: Count[] }[] {
  const hours = new Map<number, { hour: Date; amounts: Amounts; cells: Count[] }>()
  for (const count of counts) {
    const at = count.hour.getTime()
    const known = hours.get(at) ?? { hour: count.hour, amounts: noAmounts(), cells: [] }
    hours.set(at, known)
    const name = amountOf(count.key.meter)
    if (name !== undefined) known.amounts[name] += count.value
    if (isBrokenDown(count.key.meter)) known.cells.push(count)
  }
  return [...hours.values()].sort((a, b) => a.hour.getTime() - b.hour.getTime())
}

function withCells(month: OpenMonth, counts: readonly Count[]): OpenMonth {
  const cells = new Map(month.cells)
  for (const { key, value } of counts) addToCell(cells, key, value)
  return { ...month, cells }
}

function correct(
  posting: TenantPosting,
  { recordedAt, ...what }: Pick<Correction, 'hour' | 'amounts' | 'billedMonth' | 'recordedAt'>,
): Correction {
  const link = { ...what, tenantId: posting.tenantId, number: posting.corrections + 1 }
  return { ...link, recordedAt, previous: posting.correctionsHash, hash: correctionLink(posting.correctionsHash, link) }
}

/**
 * Adds a correction to a month's totals. An hour's connections are the sum of its bucket and its corrections; of the
 * hours the greatest one counts.
 */
function withCorrection(posting: TenantPosting, month: OpenMonth, { hour, amounts }: Correction): OpenMonth {
  const same = (other: { hour: Date }) => other.hour.getTime() === hour.getTime()
  const parts = [...unpackHours(month.hours, posting.tenantId, month.month), ...posting.corrected]
    .filter(same)
    .map((part) => part.amounts)
  const { connectionsPeak } = parts.reduce(addAmounts, amounts)
  return { ...month, totals: joinAmounts(month.totals, { ...amounts, connectionsPeak }) }
}

/** Returns the months from that of the first hour to that of the last. */
export function monthsBetween(first: Date, last: Date): Date[] {
  const months: Date[] = []
  for (let month = startOfMonth(first); month <= last; month = nextMonth(month)) months.push(month)
  return months
}
