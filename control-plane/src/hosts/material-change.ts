// Decides which measurements of a host are stored. Pure.
import type { Amounts, HostRecord, Measurement } from './host.ts'

/** The changes of free amounts that are stored, as shares of the totals. Idle CPU time differs from second to second. */
const freeShares = { cpuMillis: 0.25, memoryBytes: 0.05, diskBytes: 0.05 } as const
/** The age of the stored measurement after which the next one is stored in any case. */
const maxAgeMilliseconds = 300_000

/**
 * Whether a record differs from the stored one in what its readers act on: anything but the time and small changes of what is
 * free.
 */
export function isMaterialChange(stored: HostRecord | undefined, record: HostRecord): boolean {
  if (stored === undefined || stored.error !== record.error) return true
  if (record.error !== undefined) return false
  const [before, after] = [stored.measurement, record.measurement]
  if (before === undefined || after === undefined || stored.measuredAt === undefined) return true
  const age = (record.measuredAt?.getTime() ?? 0) - stored.measuredAt.getTime()
  return age >= maxAgeMilliseconds || withoutFree(before) !== withoutFree(after) || isFreeChanged(before, after)
}

const amounts = ['cpuMillis', 'memoryBytes', 'diskBytes'] as const

function withoutFree(measurement: Measurement): string {
  const { name, apiVersion, reservedByTenants, reservedByPlatform, warnings } = measurement
  const totals = amounts.map((what) => measurement[what].total)
  const reserved = [reservedByTenants, reservedByPlatform].flatMap(({ cpuMillis, memoryBytes }) => [
    cpuMillis,
    memoryBytes,
  ])
  return JSON.stringify([name, apiVersion, totals, reserved, warnings])
}

function isFreeChanged(before: Measurement, after: Measurement): boolean {
  const differs = ({ free: was, total }: Amounts, { free }: Amounts, share: number) =>
    was === null || free === null ? was !== free : Math.abs(free - was) > share * (total ?? 0)
  return amounts.some((what) => differs(before[what], after[what], freeShares[what]))
}
