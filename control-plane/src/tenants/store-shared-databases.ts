// Allocates slots of a region's shared databases to homes of tenants.
import type { Transaction } from '../platform/database.ts'
import { ControlError } from '../platform/errors.ts'
import { lock } from '../platform/locks.ts'
import type { Isolation } from '../stacks/index.ts'

/** Homes in one shared database, unless an operator changes its limit. With more, catalogs and dumps get slow. */
export const homesPerDatabase = 1_000
/**
 * Free slots of a database from which creations do not wait for each other. It exceeds the number of concurrent
 * creations.
 */
const minFreeSlotsWithoutLock = 100

/**
 * Returns the ID of the region's first shared database with a free slot, or of a new one; null for a tenant that does not
 * share. The last slots of a database are allocated one after the other.
 */
export async function sharedDatabaseFor(
  transaction: Transaction,
  { region: regionId, isolation }: { region: string; isolation: Isolation },
): Promise<string | null> {
  return isolation === 'schema-per-tenant' ? (await databaseWithRoom(transaction, regionId)).id : null
}

/** Returns the region's first shared database with a free slot, or a new one. */
export async function databaseWithRoom(
  transaction: Transaction,
  regionId: string,
): Promise<{ id: string; name: string }> {
  const candidate = await firstWithRoom(transaction, regionId)
  if (candidate !== undefined && candidate.room >= minFreeSlotsWithoutLock) return candidate
  await lock(transaction, `homes:${regionId}`)
  const withRoom = await firstWithRoom(transaction, regionId)
  if (withRoom !== undefined) return withRoom
  const count = await transaction.sharedDatabase.count({ where: { regionId } })
  return openDatabase(transaction, regionId, count + 1)
}

/** Returns the name of a region's shared database. @param number its number in the order of their creation, from 1 */
export function sharedDatabaseName(number: number): string {
  return `tenantry_homes_${number}`
}

function openDatabase(transaction: Transaction, regionId: string, number: number) {
  const data = { id: `${regionId}-${number}`, regionId, name: sharedDatabaseName(number), capacity: homesPerDatabase }
  return transaction.sharedDatabase.create({ data })
}

/** Returns the region's oldest shared database with a free slot. It reads indexes only, because a region may have 100,000 homes. */
async function firstWithRoom(
  transaction: Transaction,
  regionId: string,
): Promise<{ id: string; name: string; room: number } | undefined> {
  const [first] = await transaction.$queryRaw<{ id: string; name: string; room: number }[]>`
    select id, name, room from (
      select d.id, d.name, d.created_at,
        d.capacity - (select count(*) from tenants t where t.shared_database_id = d.id)::int as room
      from shared_databases d
      where d.region_id = ${regionId} and (d.max_bytes is null or d.bytes is null or d.bytes < d.max_bytes)) as databases
    where room > 0 order by created_at, id limit 1`
  return first
}

/**
 * Returns the shared database to which a home is to move. The one that follows the region's last is opened.
 * @throws ControlError UNKNOWN_DATABASE, DATABASE_FULL
 */
export async function sharedDatabaseNamed(
  transaction: Transaction,
  regionId: string,
  name: string,
): Promise<{ id: string; name: string }> {
  await lock(transaction, `homes:${regionId}`)
  const existing = await transaction.sharedDatabase.findMany({
    where: { regionId },
    orderBy: { createdAt: 'asc' },
    include: { _count: { select: { tenants: true } } },
  })
  const found = existing.find((database) => database.name === name)
  if (found !== undefined) {
    if (found._count.tenants < found.capacity) return found
    throw new ControlError('DATABASE_FULL', `The database "${name}" has its maximum of ${found.capacity} homes.`)
  }
  const next = sharedDatabaseName(existing.length + 1)
  if (name === next) return openDatabase(transaction, regionId, existing.length + 1)
  const allowed = [...existing.map((database) => database.name), next].slice(-20)
  throw new ControlError(
    'UNKNOWN_DATABASE',
    `Invalid database "${name.slice(0, 100)}". Allowed in the region "${regionId}": ${allowed.join(', ')}.`,
  )
}

interface MovableTenant {
  isolation: string
  desired: string
  status: string
  sharedDatabase: { name: string } | null
}

/**
 * Rejects the move of a tenant that is not served from a shared database, or is in that one. @throws ControlError
 * NOT_SHARED, TENANT_DELETED, SAME_DATABASE, NOT_ACTIVE
 */
export function rejectUnlessMovable(tenant: MovableTenant, to: string): void {
  const { isolation, desired, sharedDatabase } = tenant
  if (sharedDatabase === null)
    throw new ControlError(
      'NOT_SHARED',
      `A move requires a tenant that shares a database. The isolation of this one is ${isolation}.`,
    )
  if (desired === 'deleted') throw new ControlError('TENANT_DELETED', 'The tenant is being deleted.')
  if (sharedDatabase.name === to)
    throw new ControlError('SAME_DATABASE', `The home of the tenant is in the database "${to}" already.`)
  rejectUnlessReady(tenant)
}

/** Rejects the move of a tenant that is not served. @throws ControlError NOT_ACTIVE */
export function rejectUnlessReady({ desired, status }: Pick<MovableTenant, 'desired' | 'status'>): void {
  if (desired !== 'active' || status !== 'ready')
    throw new ControlError('NOT_ACTIVE', `Only a ready tenant can be moved. This one is ${status}.`)
}
