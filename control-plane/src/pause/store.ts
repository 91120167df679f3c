// Writes pauses of idle tenants to the control database. Only the leader may write (`LeadershipLost` otherwise). A
// pause increments the generation, so that the reconciler carries it out.
import type { Database } from '../platform/database.ts'
import { ledWrite } from '../platform/led-write.ts'
import { incrementGeneration } from '../tenants/index.ts'

/** Writes pauses of idle tenants. */
export type PauseStore = ReturnType<typeof createPauseStore>

/** Creates the store of pauses, on the control database. */
export function createPauseStore(database: Database, now: () => Date) {
  return {
    /**
     * Pauses a tenant.
     * @returns false when a request has changed the tenant since that generation, or an operation is in progress
     */
    pause: (id: string, generation: number, epoch: bigint): Promise<boolean> =>
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
