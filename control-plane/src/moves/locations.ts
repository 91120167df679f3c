// The two databases of a move.
import type { SharedLocation } from '../backups/index.ts'

/** A database that has a home, or receives one. */
export interface MoveLocation extends SharedLocation {
  /** Whether it exists and accepts connections. One that never did has no home. */
  isPresent(signal: AbortSignal): Promise<boolean>
}

export interface Locations {
  tenantId: string
  source: MoveLocation
  target: MoveLocation
}
