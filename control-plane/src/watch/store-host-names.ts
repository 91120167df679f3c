// Which host names belong to tenants. Those in their grace time keep theirs.
import type { Database } from '../platform/database.ts'

/** Which host names belong to tenants of a region, on the control database. */
export function createHostNames(database: Database) {
  return {
    /** Whether a tenant of the region has the name, one that waits for its removal among them. */
    async has(name: string, region: string): Promise<boolean> {
      return (await database.tenant.count({ where: { name, regionId: region } })) > 0
    },
  }
}
