// Reads how much memory the services of tenants need, and what they reserve already.
import { placementOf } from '../placement/index.ts'
import type { Database, Prisma } from '../platform/database.ts'
import { ofModel, type Isolation } from '../stacks/index.ts'
import { sizesAfter, toSizes } from '../tenants/index.ts'
import type { RoomStore, SizedTenant } from './region-room.ts'

const withPlacements = { plan: true, placements: true } as const
type Row = Prisma.TenantGetPayload<{ include: typeof withPlacements }>

/** Creates the store, on the control database. */
export function createRoomStore(database: Database): RoomStore {
  return {
    async planSizes(id) {
      return toSizes((await database.plan.findUnique({ where: { id } }))?.resources)
    },

    async nextWarm(regionId, isolation) {
      const row = await database.tenant.findFirst({
        where: { regionId, isolation, desired: 'warm', status: 'warm' },
        include: withPlacements,
        orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
      })
      return row === null ? undefined : sized(row)
    },

    async changed(id, change) {
      const row = await database.tenant.findUnique({ where: { id }, include: withPlacements })
      if (row === null || row.isolation === 'schema-per-tenant') return undefined
      const plan = change.plan === undefined ? row.plan : await database.plan.findUnique({ where: { id: change.plan } })
      const sizes = sizesAfter(change, {
        resources: row.resources,
        planResources: row.plan.resources,
        newPlanResources: plan?.resources,
      })
      const tenant = sized(row)
      if (sizes === undefined || tenant === undefined) return undefined
      return { ...tenant, sizes, before: tenant.sizes, regionId: row.regionId }
    },

    async waiting(regionId) {
      const rows = await database.tenant.findMany({
        where: {
          regionId,
          isolation: { not: 'schema-per-tenant' },
          OR: [
            { desired: { in: ['active', 'warm'] }, placements: { none: {} } },
            { desired: { not: 'deleted' }, observedGeneration: { lt: database.tenant.fields.generation } },
          ],
        },
        include: withPlacements,
        orderBy: { createdAt: 'asc' },
      })
      return rows.flatMap((row) => sized(row) ?? [])
    },
  }
}

/** Returns the services of a tenant's isolation, without those that a move adds or removes; undefined without sizes. */
function sized({ id, isolation: model, resources, plan, placements }: Row): SizedTenant | undefined {
  const sizes = toSizes(resources) ?? toSizes(plan.resources)
  if (sizes === undefined) return undefined
  // A check constraint limits the column to its values.
  const isolation = model as Isolation
  const { placement, reserved } = placementOf(placements)
  return { id, isolation, sizes, placement: ofModel(placement, isolation), reserved: ofModel(reserved, isolation) }
}
