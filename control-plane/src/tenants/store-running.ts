// Reads running tenants with services of their own from the control database.
import type { Database } from '../platform/database.ts'
import type { Isolation } from '../stacks/index.ts'

/** A running tenant with services of its own, without an operation in progress. */
export interface RunningTenant {
  id: string
  isolation: Isolation
  generation: number
  /** Idle time until the tenant is paused; undefined for the region's default, 0 for never. */
  pauseAfterSeconds: number | undefined
  /** Time of the last change, for example of its last wake. */
  updatedAt: Date
}

/** Reads the running tenants with services of their own. */
export type RunningTenants = ReturnType<typeof createRunningTenants>

/** Creates the reader of running tenants on the control database. */
export function createRunningTenants(database: Database) {
  return {
    /** Returns the tenants of a region that are ready and have no open operation, in the order of their IDs. */
    async runningTenants(regionId: string): Promise<RunningTenant[]> {
      const rows = await database.$queryRaw<
        { id: string; isolation: Isolation; generation: number; pause_after_seconds: number | null; updated_at: Date }[]
      >`
        select id, isolation, generation, pause_after_seconds, updated_at from tenants
        where region_id = ${regionId} and isolation <> 'schema-per-tenant' and desired = 'active' and status = 'ready'
          and observed_generation = generation
          and not exists (select from operations where tenant_id = tenants.id and state in ('pending', 'running'))
        order by id`
      return rows.map(({ id, isolation, generation, pause_after_seconds: seconds, updated_at: updatedAt }) => ({
        id,
        isolation,
        generation,
        pauseAfterSeconds: seconds ?? undefined,
        updatedAt,
      }))
    },
  }
}
