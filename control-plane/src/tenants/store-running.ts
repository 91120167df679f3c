// Which tenants with services of their own run, in the control database.
import type { Database } from '../platform/database.ts'

/** A tenant of its own stack that runs, and of which nothing is under way. */
export interface RunningTenant {
  id: string
  generation: number
  /** Undefined: the region's; 0: never. */
  pauseAfterSeconds: number | undefined
  /** When something was last done to it, its last wake for example. */
  updatedAt: Date
}

/** Reads which tenants with services of their own run. */
export interface RunningTenants {
  /** Those of a region that are ready and have no operation open, in order of their ids. */
  runningTenants(regionId: string): Promise<RunningTenant[]>
}

/** Which tenants run, on the control database. */
export function createRunningTenants(database: Database): RunningTenants {
  return {
    async runningTenants(regionId) {
      const rows = await database.$queryRaw<
        { id: string; generation: number; pause_after_seconds: number | null; updated_at: Date }[]
      >`
        select id, generation, pause_after_seconds, updated_at from tenants
        where region_id = ${regionId} and isolation <> 'schema-per-tenant' and desired = 'active' and status = 'ready'
          and observed_generation = generation
          and not exists (select from operations where tenant_id = tenants.id and state in ('pending', 'running'))
        order by id`
      return rows.map(({ id, generation, pause_after_seconds: seconds, updated_at: updatedAt }) => ({
        id,
        generation,
        pauseAfterSeconds: seconds ?? undefined,
        updatedAt,
      }))
    },
  }
}
