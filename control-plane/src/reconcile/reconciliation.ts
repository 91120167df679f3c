// What every step of one tenant's reconciliation works with.
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
   * Numbers of subnets, by tenant, whose network could not be made. None is tried there again before its move was heard of: a
   * move that was given up may come later, and must find no network.
   */
  rejectedSubnets: Map<string, number>
  observations: Observations
}

/** `again`: not before that time is there anything to do. `repaired`: something had changed that nobody had asked for. */
export interface Outcome {
  again: Date | undefined
  repaired: boolean
}

/** What an operator reads as the operation's `step`. */
export type OperationStep = 'services' | 'home'

export async function recordStep(
  snapshot: Snapshot,
  step: OperationStep,
  { store, epoch }: Pick<Reconciliation, 'store' | 'epoch'>,
): Promise<void> {
  if (snapshot.operation !== undefined && isDedicated(snapshot))
    await store.recordStep(snapshot.operation.id, step, epoch)
}
