// Converts readings of a tenant's home into amounts of hours for the ledger. Pure. The home counts files' bytes and
// function runs itself, to the microsecond. Documents are measured when the home is read, and the measurement holds
// until the next reading.
import { hourMilliseconds, type HomeCounters } from '@tenantry/contract'
import { startOfHour } from './hours.ts'
import type { Amounts } from './hour-bucket.ts'

/** The amounts of a home in one hour, cumulative within the hour. */
export type HomeAmounts = Pick<
  Amounts,
  | 'egressBytes'
  | 'documentByteSeconds'
  | 'fileByteSeconds'
  | 'functionInvocations'
  | 'functionMilliseconds'
  | 'functionCpuMicroseconds'
  | 'functionMemoryKibMilliseconds'
  | 'realtimeMessages'
>

export interface HomeReading {
  tenantId: string
  /**
   * The id of the home's counters, a UUID. It changes when they may have gone back, as after a restore. Its amounts are
   * added.
   */
  boot: string
  hours: { hour: Date; amounts: HomeAmounts }[]
  /** The start of a UTC hour. All usage of earlier hours is in this reading or was recorded before. */
  completeUntil: Date
}

/** Returns the name of a tenant's home among the ledger's sources. */
export function homeSource(tenantId: string): string {
  return `home:${tenantId}`
}

/** The state of a home at its last reading. */
export interface HomeState {
  tenantId: string
  /** The id of the home's counters, a UUID. Counters that begin again have another one. */
  books: string
  readAt: Date
  documentBytes: bigint
  fileBytes: bigint
  /** The amounts that were reported for the hour of `readAt`, under these counters. */
  documentByteSeconds: bigint
  fileByteSeconds: bigint
}

/** A period in which a tenant was deleted, before the deletion was reverted. */
export interface DeletedPeriod {
  from: Date
  until: Date
}

/** The maximum duration of a run, with reserve. A run belongs to the hour in which it began. */
const maxRunMilliseconds = 10 * 60_000

/** The `completeUntil` of a source that reports nothing more. */
export const forGood = new Date('9999-12-31T00:00:00Z')

/**
 * Converts a reading of a home.
 * @param away the last period in which the tenant was deleted: its bytes did not count, although the home stored them
 * @returns the readings to record, in order, and the state to store afterwards
 */
export function readingOf(
  before: HomeState | undefined,
  counters: HomeCounters,
  at: Date,
  away?: DeletedPeriod,
): { readings: HomeReading[]; state: HomeState } {
  if (before !== undefined && away !== undefined && before.readAt < away.until) {
    const ended = heldReading(before, laterOf(before.readAt, away.from))
    const isSameHour = startOfHour(ended.state.readAt).getTime() === startOfHour(away.until).getTime()
    const none = isSameHour ? {} : { documentByteSeconds: 0n, fileByteSeconds: 0n }
    const next = readingOf({ ...ended.state, ...none, readAt: away.until }, counters, at, away)
    return { readings: [ended.reading, ...next.readings], state: next.state }
  }
  const began = new Date(Math.min(laterOf(away?.until, new Date(counters.began)).getTime(), at.getTime()))
  const same = before?.books === counters.books
  // Bytes under earlier counters were stored until these counters began.
  const last = before === undefined || same ? [] : [heldReading(before, laterOf(before.readAt, began)).reading]
  const from: HomeState = same
    ? before
    : {
        tenantId: counters.tenant_id,
        books: counters.books,
        readAt: laterOf(before?.readAt, began),
        documentBytes: BigInt(counters.document_bytes),
        fileBytes: 0n,
        documentByteSeconds: 0n,
        fileByteSeconds: 0n,
      }
  const documents = held(from.readAt, at, from.documentBytes, from.documentByteSeconds)
  const reported = new Map(counters.hours.map((hour) => [Date.parse(hour.hour), hour]))
  const hours = [...new Set([...documents.keys(), ...reported.keys()])].sort((one, other) => one - other)
  const thisHour = startOfHour(at).getTime()
  return {
    readings: [
      ...last,
      {
        tenantId: counters.tenant_id,
        boot: counters.books,
        completeUntil: completeUntil(at),
        hours: hours.map((hour) => {
          const stated = reported.get(hour)
          return {
            hour: new Date(hour),
            amounts: {
              egressBytes: BigInt(stated?.function_egress_bytes ?? 0),
              documentByteSeconds: documents.get(hour) ?? 0n,
              fileByteSeconds: isAway(hour, away) ? 0n : BigInt(stated?.file_byte_seconds ?? 0),
              functionInvocations: BigInt(stated?.function_invocations ?? 0),
              functionMilliseconds: BigInt(stated?.function_milliseconds ?? 0),
              functionCpuMicroseconds: BigInt(stated?.function_cpu_microseconds ?? 0),
              functionMemoryKibMilliseconds: BigInt(stated?.function_memory_kib_milliseconds ?? 0),
              realtimeMessages: BigInt(stated?.realtime_messages ?? 0),
            },
          }
        }),
      },
    ],
    state: {
      tenantId: counters.tenant_id,
      books: counters.books,
      readAt: at,
      documentBytes: BigInt(counters.document_bytes),
      fileBytes: BigInt(counters.file_bytes),
      documentByteSeconds: documents.get(thisHour) ?? 0n,
      fileByteSeconds: BigInt(reported.get(thisHour)?.file_byte_seconds ?? 0),
    },
  }
}

/**
 * Estimates the reading of a home that can't be read: it still stores the same bytes.
 * @param until not before the last reading
 */
export function heldReading(before: HomeState, until: Date): { reading: HomeReading; state: HomeState } {
  const documents = held(before.readAt, until, before.documentBytes, before.documentByteSeconds)
  const files = held(before.readAt, until, before.fileBytes, before.fileByteSeconds)
  const thisHour = startOfHour(until).getTime()
  return {
    reading: {
      tenantId: before.tenantId,
      boot: before.books,
      completeUntil: completeUntil(until),
      hours: [...documents].map(([hour, documentByteSeconds]) => ({
        hour: new Date(hour),
        amounts: { ...noRuns, documentByteSeconds, fileByteSeconds: files.get(hour) ?? 0n },
      })),
    },
    state: {
      ...before,
      readAt: until,
      documentByteSeconds: documents.get(thisHour) ?? 0n,
      fileByteSeconds: files.get(thisHour) ?? 0n,
    },
  }
}

const noRuns: Omit<HomeAmounts, 'documentByteSeconds' | 'fileByteSeconds'> = {
  egressBytes: 0n,
  functionInvocations: 0n,
  functionMilliseconds: 0n,
  functionCpuMicroseconds: 0n,
  functionMemoryKibMilliseconds: 0n,
  realtimeMessages: 0n,
}

/**
 * Returns the byte-seconds of each hour between two times.
 * @param reported those already reported for the first hour
 */
function held(from: Date, until: Date, bytes: bigint, reported: bigint): Map<number, bigint> {
  const amounts = new Map([[startOfHour(from).getTime(), reported]])
  for (let hour = startOfHour(from).getTime(); hour <= until.getTime(); hour += hourMilliseconds) {
    const milliseconds = Math.max(
      0,
      Math.min(until.getTime(), hour + hourMilliseconds) - Math.max(from.getTime(), hour),
    )
    amounts.set(hour, (amounts.get(hour) ?? 0n) + (bytes * BigInt(milliseconds)) / 1000n)
  }
  return amounts
}

/** Whether an hour of files is in the deleted period. The ledger keeps what it has from before; the last hour counts. */
function isAway(hour: number, away: DeletedPeriod | undefined): boolean {
  return away !== undefined && hour >= startOfHour(away.from).getTime() && hour < startOfHour(away.until).getTime()
}

/** Returns the time before which a home that was read at `at` reports nothing more. */
export function completeUntil(at: Date): Date {
  return startOfHour(new Date(at.getTime() - maxRunMilliseconds))
}

/** Returns the time before which a home was last read if a reading at `at` completes further hours. */
export function incompleteBefore(at: Date): Date {
  return new Date(completeUntil(at).getTime() + maxRunMilliseconds)
}

function laterOf(one: Date | undefined, other: Date): Date {
  return one !== undefined && one > other ? one : other
}
