// What runtimes report of homes, and the values that the ledger stores of it.
import type { HomeCounters } from '@tenantry/contract'
import type { HomeReading } from '#control-plane/usage/home-reading.ts'

const tenantId = 't_00000000000000000001'
export const start = Date.UTC(2026, 10, 22, 3, 20)

interface CountersInput {
  books?: string
  began?: number
  documents?: number
  files?: number
  hours?: Record<number, { files?: bigint; runs?: bigint; messages?: bigint }>
}

/** Returns what a runtime reports of a home at `at`. */
export function countersAt(
  at: number,
  {
    books = '00000000-0000-4000-8000-000000000001',
    began = start,
    documents = 0,
    files = 0,
    hours = {},
  }: CountersInput,
  id = tenantId,
): HomeCounters {
  return {
    tenant_id: id,
    books,
    began: new Date(began).toISOString(),
    at: new Date(at).toISOString(),
    document_bytes: documents,
    file_bytes: files,
    hours: Object.entries(hours).map(([hour, { files = 0n, runs = 0n, messages = 0n }]) => ({
      hour: new Date(Number(hour)).toISOString(),
      file_byte_seconds: String(files),
      function_invocations: String(runs),
      function_milliseconds: '0',
      function_cpu_microseconds: '0',
      function_memory_kib_milliseconds: '0',
      realtime_messages: String(messages),
    })),
  }
}

/** The greatest value of each boot, hour and amount, as the ledger stores it. */
export class GreatestValues {
  readonly values = new Map<string, bigint>()

  add({ boot, hours }: HomeReading): void {
    for (const { hour, amounts } of hours) {
      for (const [name, value] of Object.entries(amounts)) {
        const key = `${boot} ${hour.getTime()} ${name}`
        if (value > (this.values.get(key) ?? 0n)) this.values.set(key, value)
      }
    }
  }

  sum(name: string): bigint {
    return [...this.values].filter(([key]) => key.endsWith(name)).reduce((sum, [, value]) => sum + value, 0n)
  }
}
