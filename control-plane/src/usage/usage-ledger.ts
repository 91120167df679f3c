// What comes into the ledger: the gateways' pushes and the readings of tenants' homes.
import type { UsagePush } from '@tenantry/contract'
import type { Amounts } from './hour-bucket.ts'

/** What a home knows of one of its hours; all are cumulative within the hour. */
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
  /** UUID; another one when the home's own counts may have gone back, as after a restore. What comes under it is added. */
  boot: string
  hours: { hour: Date; amounts: HomeAmounts }[]
  /** Start of a UTC hour: all that was used in the hours before it is in this reading or was recorded before. */
  completeUntil: Date
}

/** Takes in what gateways and homes have counted. */
export interface UsageLedger {
  /**
   * Repeats and reordering do no harm: the greatest value of a counter stays.
   * @throws ControlError INVALID_FIELD for an hour that is none, or a boot that is no UUID; nothing was recorded then
   */
  record(push: UsagePush): Promise<void>
  /** As `record`; only for what the control plane read itself. The tenant's hours wait for its home from the first reading on. */
  recordHome(reading: HomeReading): Promise<void>
}

/** How the ledger names the home of a tenant among its sources. */
export function homeSource(tenantId: string): string {
  return `home:${tenantId}`
}
