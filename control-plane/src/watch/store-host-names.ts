// Which host names belong to tenants. Those in their grace time keep theirs.
import type { Database } from '../platform/database.ts'

export function createHostNames(database: Database) {
  return {
    async has(name: string, region: string): Promise<boolean> {
      return (await database.tenant.count({ where: { name, regionId: region } })) > 0
    },
  }
}
