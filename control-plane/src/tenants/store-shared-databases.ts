// Allocates slots of a region's shared databases to homes of tenants.
import type { Transaction } from '../platform/database.ts'
import { lock } from '../platform/locks.ts'

/** Homes in one shared database. With more, catalogs and dumps get slow. */
const homesPerDatabase = 1_000
/**
 * Free slots of a database from which creations do not wait for each other. It exceeds the number of concurrent
 * creations.
 */
const minFreeSlotsWithoutLock = 100

/**
 * Returns the region's first shared database with a free slot, or a new one. The last slots of a database are allocated
 * one after the other.
 */
export async function sharedDatabaseWithRoom(transaction: Transaction, regionId: string): Promise<string> {
  const candidate = (await sharedDatabases(transaction, regionId)).find(({ room }) => room > 0)
  if (candidate !== undefined && candidate.room >= minFreeSlotsWithoutLock) return candidate.id
  await lock(transaction, `homes:${regionId}`)
  const databases = await sharedDatabases(transaction, regionId)
  const withRoom = databases.find(({ room }) => room > 0)
  if (withRoom !== undefined) return withRoom.id
  const name = `tenantry_homes_${databases.length + 1}`
  const made = await transaction.sharedDatabase.create({
    data: { id: `${regionId}-${databases.length + 1}`, regionId, name, capacity: homesPerDatabase },
  })
  return made.id
}

async function sharedDatabases(transaction: Transaction, regionId: string): Promise<{ id: string; room: number }[]> {
  const rows = await transaction.sharedDatabase.findMany({
    where: { regionId },
    orderBy: { createdAt: 'asc' },
    include: { _count: { select: { tenants: true } } },
  })
  return rows.map(({ id, capacity, _count: homes }) => ({ id, room: capacity - homes.tenants }))
}
