// The dependencies of every step of one tenant's reconciliation.
import type { Clock } from '../platform/clock.ts'
import type { Failpoint } from './failpoints.ts'
import type { Observations } from './observations.ts'
import { isDedicated, type Region } from './region.ts'
import type { ReconcileStore, Snapshot } from './reconcile-store.ts'
import type { RegionProbe } from './region-probe.ts'

export interface Reconciliation {
  store: ReconcileStore
  region: Region
  homeVersion: string
  probe: RegionProbe
  failpoint: Failpoint
  clock: Clock
  epoch: bigint
  /**
   * Subnet numbers, by tenant, whose network could not be created. None is tried again before its move is confirmed: an
   * aborted move may still be committed later and must find no network.
   */
  rejectedSubnets: Map<string, number>
  observations: Observations
}

/** Result of a run. */
export interface Outcome {
  /** Earliest time at which there is more work. */ again: Date | undefined
  /** Whether the run repaired a change that no client had requested. */ repaired: boolean
}

/** The operation's `step`, for operators. That of a repair names what it changes. */
export type OperationStep = 'services' | 'home' | 'switchover' | `repair: ${string}`

export async function recordStep(
  snapshot: Snapshot,
  step: OperationStep,
  { store, epoch }: Pick<Reconciliation, 'store' | 'epoch'>,
): Promise<void> {
  if (snapshot.operation !== undefined && isDedicated(snapshot))
    await store.recordStep(snapshot.operation.id, step, epoch)
}
