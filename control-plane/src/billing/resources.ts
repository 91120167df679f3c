// The priced resources: how each amount is read from a bucket, and the units that prices may use.
import type { Amounts } from '../usage/index.ts'

export interface Unit {
  /** Base amounts (bytes, milliseconds…) in one unit. */
  size: bigint
  /**
   * The number of base amounts that make one second of a month, where the base amount is a second or millisecond of
   * something.
   */
  perMonthSecond?: bigint
}

interface ResourceKind {
  /** The resource's name on invoices. */
  title: string
  /** The name of what the base amount counts, in the plural. */
  base: string
  amount(amounts: Amounts): bigint
  units: Readonly<Record<string, Unit>>
  /** The unit of quantities for which no price names one. */
  defaultUnit: string
}

const count = (one: string, many: string): Readonly<Record<string, Unit>> => ({
  [one]: { size: 1n },
  [`thousand ${many}`]: { size: 1_000n },
  [`million ${many}`]: { size: 1_000_000n },
})

/** The units of storage. One GB-month is a GB stored for the whole month, however many days that month has. */
const stored: Readonly<Record<string, Unit>> = {
  'MB-month': { size: 1_000_000n, perMonthSecond: 1n },
  'GB-month': { size: 1_000_000_000n, perMonthSecond: 1n },
  'GB-hour': { size: 3_600_000_000_000n },
}

const resourceKinds = {
  requests: {
    title: 'API requests',
    base: 'requests',
    amount: (amounts) => amounts.requests,
    units: count('request', 'requests'),
    defaultUnit: 'request',
  },
  egress: {
    title: 'Egress',
    base: 'bytes',
    amount: (amounts) => amounts.egressBytes,
    units: { MB: { size: 1_000_000n }, GB: { size: 1_000_000_000n }, TB: { size: 1_000_000_000_000n } },
    defaultUnit: 'GB',
  },
  documents: {
    title: 'Document storage',
    base: 'byte-seconds',
    amount: (amounts) => amounts.documentByteSeconds,
    units: stored,
    defaultUnit: 'GB-month',
  },
  files: {
    title: 'File storage',
    base: 'byte-seconds',
    amount: (amounts) => amounts.fileByteSeconds,
    units: stored,
    defaultUnit: 'GB-month',
  },
  connections: {
    title: 'Real-time connections',
    base: 'milliseconds',
    amount: (amounts) => amounts.connectionMilliseconds,
    units: { 'connection-hour': { size: 3_600_000n }, 'connection-month': { size: 1n, perMonthSecond: 1_000n } },
    defaultUnit: 'connection-hour',
  },
  realtime_messages: {
    title: 'Real-time messages',
    base: 'messages',
    amount: (amounts) => amounts.realtimeMessages,
    units: count('message', 'messages'),
    defaultUnit: 'message',
  },
  function_invocations: {
    title: 'Function invocations',
    base: 'invocations',
    amount: (amounts) => amounts.functionInvocations,
    units: count('invocation', 'invocations'),
    defaultUnit: 'invocation',
  },
  function_time: {
    title: 'Function duration',
    base: 'milliseconds',
    amount: (amounts) => amounts.functionMilliseconds,
    units: { second: { size: 1_000n }, hour: { size: 3_600_000n } },
    defaultUnit: 'second',
  },
  function_cpu: {
    title: 'Function processor time',
    base: 'microseconds',
    amount: (amounts) => amounts.functionCpuMicroseconds,
    units: { second: { size: 1_000_000n }, hour: { size: 3_600_000_000n } },
    defaultUnit: 'second',
  },
  function_memory: {
    title: 'Function memory',
    base: 'KiB-milliseconds',
    amount: (amounts) => amounts.functionMemoryKibMilliseconds,
    units: { 'GiB-second': { size: 1_048_576_000n }, 'GiB-hour': { size: 3_774_873_600_000n } },
    defaultUnit: 'GiB-second',
  },
} as const satisfies Record<string, ResourceKind>

export type Resource = keyof typeof resourceKinds

/** All resources, in the order of invoices. */
export const resources: readonly Resource[] = [
  'requests',
  'egress',
  'documents',
  'files',
  'connections',
  'realtime_messages',
  'function_invocations',
  'function_time',
  'function_cpu',
  'function_memory',
]

export function isResource(text: string): text is Resource {
  return Object.hasOwn(resourceKinds, text)
}

export function resourceKind(resource: Resource): ResourceKind {
  return resourceKinds[resource]
}

/**
 * Returns the base amounts in one of the resource's units, in a month of the given seconds.
 * @throws Error for an unknown unit
 */
export function unitSize(resource: Resource, name: string, monthSeconds: bigint): bigint {
  const { units } = resourceKind(resource)
  const unit = Object.hasOwn(units, name) ? units[name] : undefined
  if (unit === undefined) throw new Error(`The resource ${resource} has no unit "${name}".`)
  return unit.perMonthSecond === undefined ? unit.size : unit.size * unit.perMonthSecond * monthSeconds
}
