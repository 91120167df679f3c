// The two databases of a move, which are on one server.
import type { SharedLocation } from '../backups/index.ts'

export interface Locations {
  tenantId: string
  source: SharedLocation
  target: SharedLocation
}
