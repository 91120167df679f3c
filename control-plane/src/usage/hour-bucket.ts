// What a tenant used in one hour, as the ledger closes it and billing reads it. Pure.

/** Whole numbers, in the order in which the chain's links, the packed months and the exports name them. */
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
] as const
export type AmountName = (typeof amountNames)[number]

/**
 * Never below zero in a bucket. `documentByteSeconds` and `fileByteSeconds` are time integrals of what was stored;
 * `connectionsPeak` is the greatest number at once (in an hour: the gateways' greatest numbers together); all others are sums.
 */
export type Amounts = Record<AmountName, bigint>

/** What a tenant used in one UTC hour. */
export interface HourBucket {
  tenantId: string
  /** Start, UTC. */
  hour: Date
  amounts: Amounts
}

/** Amounts of an hour in which nothing was used: all 0. */
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
  }
}

/** Two parts of one hour: everything adds up, the gateways' greatest numbers of connections too. */
export function addAmounts(left: Amounts, right: Amounts): Amounts {
  const sum = noAmounts()
  for (const name of amountNames) sum[name] = left[name] + right[name]
  return sum
}

/** Two different hours: everything adds up, but of the peaks the greater one stays. */
export function joinAmounts(left: Amounts, right: Amounts): Amounts {
  const connectionsPeak = left.connectionsPeak > right.connectionsPeak ? left.connectionsPeak : right.connectionsPeak
  return { ...addAmounts(left, right), connectionsPeak }
}
