// Maps counters to the amounts of an hour, and selects the counters that are also stored broken down. Pure.
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
  realtime_messages: 'realtimeMessages',
}

const brokenDown = new Set(['requests', 'rejected_requests', 'refused_requests', 'egress_bytes', 'latency'])

/** The parts that a month's counts are broken down by; empty where a meter has no such part. */
export interface CellKey {
  meter: string
  group: string
  method: string
  statusClass: string
  bucket: string
}

/** Returns the amount that a meter adds to; undefined for a meter that is free of charge. */
export function amountOf(meter: string): AmountName | undefined {
  return amountOfMeter[meter]
}

export function isBrokenDown(meter: string): boolean {
  return brokenDown.has(meter)
}

/** The amounts that a tenant's home reports, with the meter that stores each. */
export const homeMeters = {
  egressBytes: 'egress_bytes',
  documentByteSeconds: 'document_byte_seconds',
  fileByteSeconds: 'file_byte_seconds',
  functionInvocations: 'function_invocations',
  functionMilliseconds: 'function_milliseconds',
  functionCpuMicroseconds: 'function_cpu_microseconds',
  functionMemoryKibMilliseconds: 'function_memory_kib_milliseconds',
  realtimeMessages: 'realtime_messages',
} as const satisfies Partial<Record<AmountName, string>>

/** The group under which usage shows the egress of homes: what functions send to other hosts. */
export const homeEgressGroup = 'http_fetch'
