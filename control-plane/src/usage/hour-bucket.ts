// A tenant's usage of one hour, as the ledger closes it and billing reads it. Pure.

/**
 * The names of the amounts, which are whole numbers, in the order of the chain's links, the packed months and the
 * exports.
 */
export const amountNames = [
  'requests',
  'egressBytes',
  'documentByteSeconds',
  'fileByteSeconds',
  'connectionsPeak',
  'connectionMilliseconds',
  'functionInvocations',
  'functionMilliseconds',
  'functionCpuMicroseconds',
  'functionMemoryKibMilliseconds',
  'realtimeMessages',
] as const
export type AmountName = (typeof amountNames)[number]

/**
 * The amounts of usage, never negative in a bucket. `documentByteSeconds` and `fileByteSeconds` are time integrals of
 * stored bytes; `connectionsPeak` is the maximum of simultaneous connections (in an hour: the sum of the gateways'
 * maximums); all others are sums.
 */
export type Amounts = Record<AmountName, bigint>

/** A tenant's usage of one UTC hour. */
export interface HourBucket {
  tenantId: string
  /** The start of the hour, UTC. */
  hour: Date
  amounts: Amounts
}

/** Returns the amounts of an hour without usage: all 0. */
export function noAmounts(): Amounts {
  return {
    requests: 0n,
    egressBytes: 0n,
    documentByteSeconds: 0n,
    fileByteSeconds: 0n,
    connectionsPeak: 0n,
    connectionMilliseconds: 0n,
    functionInvocations: 0n,
    functionMilliseconds: 0n,
    functionCpuMicroseconds: 0n,
    functionMemoryKibMilliseconds: 0n,
    realtimeMessages: 0n,
  }
}

/** Adds two parts of one hour. The gateways' maximums of connections add up too. */
export function addAmounts(left: Amounts, right: Amounts): Amounts {
  const sum = noAmounts()
  for (const name of amountNames) sum[name] = left[name] + right[name]
  return sum
}

/** Adds the amounts of two hours. Of the peaks the greater one counts. */
export function joinAmounts(left: Amounts, right: Amounts): Amounts {
  const connectionsPeak = left.connectionsPeak > right.connectionsPeak ? left.connectionsPeak : right.connectionsPeak
  return { ...addAmounts(left, right), connectionsPeak }
}
