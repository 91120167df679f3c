// The two databases of a move.
import type { SharedLocation } from '../backups/index.ts'
import type { PostgresUrl } from '../platform/superuser-url.ts'

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

/** Returns the Postgres server of a move that tenants share, which a network reaches; undefined if both ends are the tenant's own. */
export function sharedServer({ source, target }: Locations): PostgresUrl | undefined {
  return [source, target].find(({ socket }) => socket === undefined)?.postgresUrl
}
