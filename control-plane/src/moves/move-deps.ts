// The dependencies of the job that moves homes.
import type { HomeMigration } from '../homes/index.ts'
import type { ChangeFeed } from '../platform/change-feed.ts'
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { RuntimeFiles } from '../backups/index.ts'
import type { Failpoint, ReconcileStore, Region, RegionProbe, Snapshot } from '../reconcile/index.ts'
import type { MoveLedger } from './store-ledger.ts'
import type { ReverseLedger } from './store-reverses.ts'

export interface MoveJobDeps {
  ledger: MoveLedger
  reverses: ReverseLedger
  regions: ReadonlyMap<string, Region>
  /** The writes of the control database about services of tenants' own. */
  services: ReconcileStore
  /** Calls to shared runtimes about the files of one tenant. */
  runtimeFiles: (urls: readonly string[], tenantId: string) => RuntimeFiles
  probe: Pick<RegionProbe, 'tenantHealth' | 'route' | 'removeData'>
  /** Returns the tenant as it is now; undefined when there is none. */
  tenant: (tenantId: string) => Promise<Snapshot | undefined>
  changes: Pick<ChangeFeed, 'subscribe'>
  /** The home migrations of this version. */
  migrations: readonly HomeMigration[]
  /** Milliseconds for which a move may hold a tenant's requests before it gives up its attempt. */
  holdMilliseconds: number
  /** Seconds after a move for which it can be reverted; 0: it cannot. */
  reverseSeconds: number
  /** The pace at which a home is copied. */
  bytesPerSecond: number
  failpoint: Failpoint
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
}

/** The dependencies of one attempt. */
export interface MoveDeps extends MoveJobDeps {
  epoch: bigint
}
