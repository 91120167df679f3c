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

/** Returns the Postgres servers of a move that tenants share, which a network reaches. */
export function sharedServers({ source, target }: Locations): readonly PostgresUrl[] {
  const shared = [source, target].filter(({ socket }) => socket === undefined)
  return [...new Set(shared.map(({ postgresUrl }) => postgresUrl))]
}
