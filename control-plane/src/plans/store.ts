// Stores plans in the control database, and the regions that its foreign keys refer to.
import { ConfigurationError } from '@tenantry/contract'
import { planIsolationsOf } from '../engines/index.ts'
import type { RegionConfig } from '../regions/index.ts'
import type { Plan } from './plan.ts'
import { type RateLimits, toRate } from '../quotas/index.ts'
import type { Isolation } from '../stacks/index.ts'
import type { Database } from '../platform/database.ts'

/** Reads the plans that tenants can have (specification, section 8). */
export type PlanStore = ReturnType<typeof createPlanStore>

/** Creates the store of plans, on the control database. */
export function createPlanStore(database: Database) {
  return {
    /** Returns the plans in rising order. */
    async list(): Promise<Plan[]> {
      const rows = await database.plan.findMany({ orderBy: { rank: 'asc' } })
      const number = (value: bigint | null) => (value === null ? null : Number(value))
      return rows.map((row): Plan => ({
        id: row.id,
        isolation: row.isolation as Isolation,
        documentBytes: number(row.documentBytes),
        fileBytes: number(row.fileBytes),
        requestsPerMonth: number(row.requestsPerMonth),
        realtimeConnections: row.realtimeConnections,
        rate: toRate(row),
      }))
    },
  }
}

/** Writes the configured rates into the database, which gateways receive them from. */
export async function recordRateLimits(database: Database, limits: RateLimits): Promise<void> {
  for (const [id, limit] of Object.entries(limits)) {
    await database.plan.updateMany({
      where: { id },
      data: { ratePerSecond: limit?.per_second ?? null, rateBurst: limit?.burst ?? null },
    })
  }
}

/**
 * Checks the configured regions against the tenants.
 * @throws ConfigurationError when tenants are in a region that is not configured
 */
export async function rejectUnknownRegions(database: Database, regions: readonly RegionConfig[]): Promise<void> {
  const homeless = await database.tenant.groupBy({
    by: ['regionId'],
    where: { regionId: { notIn: regions.map(({ id }) => id) } },
    _count: true,
  })
  if (homeless.length > 0) {
    const counts = homeless.map(({ regionId, _count: count }) => `${regionId} (${count})`)
    throw new ConfigurationError(`Tenants are in regions that are not configured: ${counts.join(', ')}.`)
  }
}

/** Writes the configured regions into the database. */
export async function recordRegions(database: Database, regions: readonly RegionConfig[]): Promise<void> {
  for (const region of regions) {
    const { id, engine, domain } = region
    const strongestIsolation = planIsolationsOf(region).at(-1) ?? 'schema-per-tenant'
    await database.region.upsert({
      where: { id },
      create: { id, engine, domain, strongestIsolation },
      update: { engine, domain, strongestIsolation },
    })
  }
}
