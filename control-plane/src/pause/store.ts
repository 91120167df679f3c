// Pauses of idle tenants, in the control database: each is the leader's (`LeadershipLost` when it is not any more), and raises the
// generation, so that the reconciler carries it out.
import type { Database } from '../platform/database.ts'
import { ledWrite } from '../platform/led-write.ts'
import { incrementGeneration } from '../tenants/index.ts'

/** Writes pauses of tenants that nobody uses. */
export interface PauseStore {
  /** @returns false when something was asked of the tenant since that generation, or is under way */
  pause(tenantId: string, generation: number, epoch: bigint): Promise<boolean>
}

/** The store of pauses on the control database. */
export function createPauseStore(database: Database, now: () => Date): PauseStore {
  return {
    pause: (id, generation, epoch) =>
      ledWrite(database, epoch, [`tenant:${id}`], async (transaction) => {
        const unchanged = await transaction.tenant.count({
          where: { id, generation, desired: 'active', status: 'ready' },
        })
        const busy = await transaction.operation.count({
          where: { tenantId: id, state: { in: ['pending', 'running'] } },
        })
        if (unchanged === 0 || busy > 0) return false
        await incrementGeneration(transaction, id, 'pause', { desired: 'paused' }, now())
        return true
      }),
  }
}
