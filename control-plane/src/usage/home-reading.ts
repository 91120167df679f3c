// Converts readings of a tenant's home into amounts of hours for the ledger. Pure. The home counts files' bytes and
// function runs itself, to the microsecond. Documents are measured when the home is read, and the measurement holds
// until the next reading.
import { hourMilliseconds, type HomeCounters } from '@tenantry/contract'
import { startOfHour } from './hours.ts'
import type { HomeAmounts, HomeReading } from './usage-ledger.ts'

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

/** The maximum duration of a run, with reserve. A run belongs to the hour in which it began. */
const maxRunMilliseconds = 10 * 60_000

/** The `completeUntil` of a source that reports nothing more. */
export const forGood = new Date('9999-12-31T00:00:00Z')

/**
 * Converts a reading of a home.
 * @returns the readings to record, in order, and the state to store afterwards
 */
export function readingOf(
  before: HomeState | undefined,
  counters: HomeCounters,
  at: Date,
): { readings: HomeReading[]; state: HomeState } {
  const began = new Date(Math.min(Date.parse(counters.began), at.getTime()))
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
              documentByteSeconds: documents.get(hour) ?? 0n,
              fileByteSeconds: BigInt(stated?.file_byte_seconds ?? 0),
              functionInvocations: BigInt(stated?.function_invocations ?? 0),
              functionMilliseconds: BigInt(stated?.function_milliseconds ?? 0),
              functionCpuMicroseconds: BigInt(stated?.function_cpu_microseconds ?? 0),
              functionMemoryKibMilliseconds: BigInt(stated?.function_memory_kib_milliseconds ?? 0),
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

const noRuns: Pick<
  HomeAmounts,
  'functionInvocations' | 'functionMilliseconds' | 'functionCpuMicroseconds' | 'functionMemoryKibMilliseconds'
> = {
  functionInvocations: 0n,
  functionMilliseconds: 0n,
  functionCpuMicroseconds: 0n,
  functionMemoryKibMilliseconds: 0n,
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

/** Returns the time before which a home that was read at `at` reports nothing more. */
export function completeUntil(at: Date): Date {
  return startOfHour(new Date(at.getTime() - maxRunMilliseconds))
}

function laterOf(one: Date | undefined, other: Date): Date {
  return one !== undefined && one > other ? one : other
}
