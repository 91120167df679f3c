// The input of the ledger: the gateways' pushes and the readings of tenants' homes.
import type { UsagePush } from '@tenantry/contract'
import type { Amounts } from './hour-bucket.ts'

/** The amounts of a home in one hour, cumulative within the hour. */
export type HomeAmounts = Pick<
  Amounts,
  | 'documentByteSeconds'
  | 'fileByteSeconds'
  | 'functionInvocations'
  | 'functionMilliseconds'
  | 'functionCpuMicroseconds'
  | 'functionMemoryKibMilliseconds'
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

/** Records the counts of gateways and homes. */
export interface UsageLedger {
  /**
   * Records a push. Repeats and reordering have no effect, because the greatest value of a counter counts.
   * @throws ControlError INVALID_FIELD for an invalid hour, or a boot that is not a UUID; nothing was recorded then
   */
  record(push: UsagePush): Promise<void>
  /**
   * Records what the control plane itself has read, like `record`. The tenant's hours wait for its home from the first
   * reading on.
   */
  recordHome(reading: HomeReading): Promise<void>
}

/** Returns the name of a tenant's home among the ledger's sources. */
export function homeSource(tenantId: string): string {
  return `home:${tenantId}`
}
