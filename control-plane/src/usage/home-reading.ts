// What was read of a tenant's home → amounts of hours for the ledger. Pure. Files' bytes and runs are in the home's own books, to
// the microsecond; documents are measured when the home is read, and what was measured holds until the next time.
import { hourMilliseconds, type HomeCounters } from '@tenantry/contract'
import { startOfHour } from './hours.ts'
import type { HomeAmounts, HomeReading } from './usage-ledger.ts'

/** What was last read. */
export interface HomeState {
  tenantId: string
  /** UUID. */
  books: string
  readAt: Date
  documentBytes: bigint
  fileBytes: bigint
  /** Told so far of the hour of `readAt`, under these books. */
  documentByteSeconds: bigint
  fileByteSeconds: bigint
}

/** A run belongs to the hour in which it began; this is longer than the longest takes. */
const maxRunMilliseconds = 10 * 60_000

/** Nothing more will come. */
export const forGood = new Date('9999-12-31T00:00:00Z')

/** A home that was read. @returns what to record, in order, and what to keep then */
export function readingOf(
  before: HomeState | undefined,
  counters: HomeCounters,
  at: Date,
): { readings: HomeReading[]; state: HomeState } {
  const began = new Date(Math.min(Date.parse(counters.began), at.getTime()))
  const same = before?.books === counters.books
  // What was stored under former books lay there until these began.
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

/** A home that can't be read: what it stored lies there still. @param until not before it was read */
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

/** Byte-seconds of each hour from one time to another. @param reported of the first hour, before that */
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

/** Of a home that was read then: before it, nothing more comes. */
export function completeUntil(at: Date): Date {
  return startOfHour(new Date(at.getTime() - maxRunMilliseconds))
}

function laterOf(one: Date | undefined, other: Date): Date {
  return one !== undefined && one > other ? one : other
}
