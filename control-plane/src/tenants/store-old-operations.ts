// Deletes old operations from the control database.
import type { Database } from '../platform/database.ts'

/** Deletes old operations. */
export type OldOperations = ReturnType<typeof createOldOperations>

/** Creates the store, on the control database. */
export function createOldOperations(database: Database) {
  return {
    /**
     * Deletes operations that were created before a time, the oldest first. Operations in progress, the latest one of
     * each tenant, and a move whose old home is not removed yet stay.
     * @returns the number of deleted operations, at most `max`
     */
    remove: (before: Date, max: number): Promise<number> =>
      database.$executeRaw`
        delete from operations where id in (
          select id from operations o where created_at < ${before} and state not in ('pending', 'running')
            and (move -> 'reverse' is null or move -> 'reverse' -> 'removed' is not null)
            and exists (select from operations later where later.tenant_id = o.tenant_id and later.created_at > o.created_at)
          order by created_at, id limit ${max})`,
  }
}
