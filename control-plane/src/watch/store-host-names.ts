// Host names of tenants. Tenants in their grace period retain theirs.
import type { Database } from '../platform/database.ts'

/** Creates the reader of tenants' host names on the control database. */
export function createHostNames(database: Database) {
  return {
    /** Whether a tenant of the region has the name, one in its grace period included. */
    async has(name: string, region: string): Promise<boolean> {
      return (await database.tenant.count({ where: { name, regionId: region } })) > 0
    },
  }
}
