// Which counters make up which amount of an hour, and which of them are also kept broken down. Pure.
import type { AmountName } from './hour-bucket.ts'

const amountOfMeter: Readonly<Record<string, AmountName>> = {
  requests: 'requests',
  egress_bytes: 'egressBytes',
  document_byte_seconds: 'documentByteSeconds',
  file_byte_seconds: 'fileByteSeconds',
  connections_peak: 'connectionsPeak',
  connection_milliseconds: 'connectionMilliseconds',
  function_invocations: 'functionInvocations',
  function_milliseconds: 'functionMilliseconds',
  function_cpu_microseconds: 'functionCpuMicroseconds',
  function_memory_kib_milliseconds: 'functionMemoryKibMilliseconds',
}

const brokenDown = new Set(['requests', 'rejected_requests', 'refused_requests', 'egress_bytes', 'latency'])

/** What a month's counts are broken down by; empty where a meter has no such part. */
export interface CellKey {
  meter: string
  group: string
  method: string
  statusClass: string
  bucket: string
}

/** @returns undefined for a meter that costs nothing */
export function amountOf(meter: string): AmountName | undefined {
  return amountOfMeter[meter]
}

export function isBrokenDown(meter: string): boolean {
  return brokenDown.has(meter)
}

/** The amounts that a tenant's home tells, and as which meter they are kept. */
export const homeMeters = {
  documentByteSeconds: 'document_byte_seconds',
  fileByteSeconds: 'file_byte_seconds',
  functionInvocations: 'function_invocations',
  functionMilliseconds: 'function_milliseconds',
  functionCpuMicroseconds: 'function_cpu_microseconds',
  functionMemoryKibMilliseconds: 'function_memory_kib_milliseconds',
} as const satisfies Partial<Record<AmountName, string>>
