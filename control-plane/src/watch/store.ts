// Reads the entries of watches from the control database.
import type { RegionConfig } from '../regions/index.ts'
import type { Database } from '../platform/database.ts'
import type { Seal } from '../platform/seal.ts'
import { PublishedTenant, type RuntimeLimits } from './published-tenant.ts'
import { readAll, readSome, type PublishedText } from './store-published-rows.ts'
import type { PublishedSource } from './watches.ts'

/** Creates the source of watches. */
export function createPublishedSource(
  database: Database,
  seal: Seal,
  regions: readonly RegionConfig[],
  limits: RuntimeLimits,
  now: () => Date,
): PublishedSource {
  const how = { seal, limits, now }
  const regionsById = new Map(regions.map((region) => [region.id, region]))
  /** Returns the entries, without those of regions that are not configured. */
  const published = (rows: readonly PublishedText[]): PublishedTenant[] =>
    rows.flatMap((row) => {
      const region = regionsById.get(row.region_id)
      return region === undefined ? [] : [new PublishedTenant(row, region, how)]
    })
  return {
    async *all() {
      for await (const rows of readAll(database)) yield* published(rows)
    },
    some: async (ids) => published(await readSome(database, [...ids])),
  }
}
