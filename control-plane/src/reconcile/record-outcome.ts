// Records the outcome of a reconciliation in the tenant and in its operation.
import { EngineError } from '../engines/index.ts'
import type { Status } from '../tenants/index.ts'
import { conditionsWith } from './conditions.ts'
import { hasFailed, type FailureSeries } from './failure-series.ts'
import { publicMessage } from './not-ready.ts'
import type { Reconciliation } from './reconciliation.ts'
import type { Snapshot } from './reconcile-store.ts'

/** Status of a tenant that was observed as specified. */
export const reachedStatus: Record<Snapshot['desired'], Status> = {
  active: 'ready',
  suspended: 'suspended',
  paused: 'paused',
  warm: 'warm',
  restoring: 'pending',
  deleted: 'deleting',
}

/**
 * Records that the tenant is as specified. @param operationError why its operation could not be carried out; undefined: it has
 * succeeded
 */
export async function recordReached(
  snapshot: Snapshot,
  { store, failpoint, epoch, observations }: Reconciliation,
  operationError?: string,
): Promise<void> {
  await failpoint('finish.before')
  await store.recordObserved(
    snapshot.id,
    {
      generation: snapshot.generation,
      status: reachedStatus[snapshot.desired],
      reason: null,
      conditions: conditionsWith(snapshot.conditions, observations.seen),
      operation:
        snapshot.operation === undefined
          ? undefined
          : {
              id: snapshot.operation.id,
              error: operationError ?? null,
              ...(operationError === undefined ? {} : { hasFailed: true }),
            },
    },
    epoch,
  )
  await failpoint('finish.after')
}

/** Records a deleted tenant whose data is retained for now, so the operation has not ended. */
export async function recordRetained(
  snapshot: Snapshot,
  { store, epoch, observations }: Reconciliation,
): Promise<void> {
  await store.recordObserved(
    snapshot.id,
    {
      generation: snapshot.generation,
      status: 'deleting',
      reason: 'deleted by the operator',
      conditions: conditionsWith(snapshot.conditions, observations.seen),
      operation: undefined,
    },
    epoch,
  )
}

/** Records why a run failed. The tenant keeps the status that was last observed until it counts as failed. */
export async function recordFailure(
  snapshot: Snapshot,
  { store, clock, epoch, observations }: Pick<Reconciliation, 'store' | 'clock' | 'epoch' | 'observations'>,
  error: unknown,
  series: FailureSeries,
): Promise<void> {
  const message = publicMessage(error)
  await store.recordObserved(
    snapshot.id,
    {
      // This generation was not observed, so the observed one stays.
      generation: snapshot.observedGeneration,
      status: statusAfter(snapshot, error, series, clock.now()),
      reason: message,
      conditions: conditionsWith(snapshot.conditions, observations.seen),
      operation: snapshot.operation === undefined ? undefined : { id: snapshot.operation.id, error: message },
    },
    epoch,
  )
}

function statusAfter(snapshot: Snapshot, error: unknown, series: FailureSeries, at: Date): Status {
  if (snapshot.desired === 'deleted') return 'deleting'
  const isLasting = error instanceof EngineError && (error.code === 'VOLUME_MISSING' || error.code === 'HOME_MISSING')
  return isLasting || hasFailed(series, at) ? 'failed' : snapshot.status
}
