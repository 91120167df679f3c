// Reads which tenants of a region wait for hosts, and how much the services of a plan need.
import type { Database } from '../platform/database.ts'
import type { Isolation } from '../stacks/index.ts'
import { toSizes } from '../tenants/index.ts'
import type { RoomStore } from './region-room.ts'

/** Creates the store, on the control database. */
export function createRoomStore(database: Database): RoomStore {
  return {
    async planSizes(id) {
      return toSizes((await database.plan.findUnique({ where: { id } }))?.resources)
    },

    async hasWarm(regionId, isolation) {
      const where = { regionId, isolation, desired: 'warm', status: 'warm' }
      return (await database.tenant.count({ where })) > 0
    },

    async waiting(regionId) {
      const rows = await database.tenant.findMany({
        where: {
          regionId,
          isolation: { not: 'schema-per-tenant' },
          desired: { in: ['active', 'warm'] },
          placements: { none: {} },
        },
        include: { plan: true },
        orderBy: { createdAt: 'asc' },
      })
      return rows.flatMap(({ isolation, resources, plan }) => {
        const sizes = toSizes(resources) ?? toSizes(plan.resources)
        // A check constraint limits the column to its values.
        return sizes === undefined ? [] : [{ isolation: isolation as Isolation, sizes }]
      })
    },
  }
}
