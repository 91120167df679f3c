// Counters as they come from gateways, and their sums.
import type { UsagePush } from '@tenantry/contract'

export interface UsageSums {
  requests: { group: string; method: string; statusClass: string; count: number }[]
  egressBytes: number
  /** Greatest number of connections of each hour, over all gateways together. */
  connectionPeaks: number[]
}

export interface UsageLedger {
  /** Repeats and reordering do no harm: the greatest value of a counter stays. */
  record(push: UsagePush): Promise<void>
  sums(tenantId: string, from: Date, to: Date): Promise<UsageSums>
}
