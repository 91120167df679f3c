// The rebalances' store on the control database, for the API.
import { randomUUID } from 'node:crypto'
import { beforePosition, decodeCursor, toPage } from '../platform/cursor.ts'
import type { Database } from '../platform/database.ts'
import { ControlError } from '../platform/errors.ts'
import { lock } from '../platform/locks.ts'
import type { Page, PageRequest } from '../platform/page.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import { isUuid, uuidPattern } from '../platform/uuid.ts'
import { alongsideGenerations, sharedDatabaseNamed } from '../tenants/index.ts'
import type { HostPlan } from './plan-host-moves.ts'
import type { PlannedMove } from './plan-moves.ts'
import type { Rebalance } from './rebalance.ts'
import { readClusters, type StoredCluster } from './store-clusters.ts'
import {
  openStates,
  readDatabases,
  toDatabase,
  toRebalance,
  withHomes,
  withMoves,
  type StoredDatabase,
} from './store-rows.ts'

/** New limits of a database; an absent one stays, and null is unlimited. */
export interface DatabaseLimits {
  maxHomes?: number
  maxBytes?: number | null
}

/** The steps of a rebalance: moves of homes, then of services, then switchovers. */
export interface PlannedRebalance extends Pick<HostPlan, 'serviceMoves' | 'switchovers'> {
  moves: readonly PlannedMove[]
}

/** The shared databases and rebalances, as operators request and read them. */
export type RebalanceStore = ReturnType<typeof createRebalanceStore>

/** Creates the API's part of the store, on the control database. */
export function createRebalanceStore({ database, now }: { database: Database; now: () => Date }) {
  return {
    /** Returns a region's shared databases in the order of their creation. */
    databases: (region: string): Promise<StoredDatabase[]> => readDatabases(database, region),

    /** Changes the limits of a shared database. @throws ControlError DATABASE_NOT_FOUND */
    async limit(
      region: string,
      name: string,
      { maxHomes, maxBytes }: DatabaseLimits,
      { transaction, audit }: RecordedWrite,
    ): Promise<StoredDatabase> {
      await lock(transaction, `rebalance:${region}`)
      const where = { regionId_name: { regionId: region, name } }
      const found = await transaction.sharedDatabase.findUnique({ where })
      if (found === null)
        throw new ControlError('DATABASE_NOT_FOUND', `The region has no shared database "${name.slice(0, 100)}".`)
      const data = {
        ...(maxHomes === undefined ? {} : { capacity: maxHomes }),
        ...(maxBytes === undefined ? {} : { maxBytes }),
      }
      const row = await transaction.sharedDatabase.update({ where, data, include: withHomes })
      const changed = toDatabase(row)
      const detail = { region, max_homes: changed.maxHomes, max_bytes: changed.maxBytes ?? null }
      audit({ action: 'database.limit', target: name, detail })
      return changed
    },

    /** Returns the tenants whose homes can be moved now, by the name of their database. */
    async movable(region: string): Promise<ReadonlyMap<string, { id: string }[]>> {
      const rows = await database.$queryRaw<{ id: string; database: string }[]>`
        select t.id, s.name as database from tenants t join shared_databases s on s.id = t.shared_database_id
        where t.region_id = ${region} and t.desired = 'active' and t.status = 'ready' and not exists (
          select from operations o where o.tenant_id = t.id and o.state in ('pending', 'running')
            and not o.kind = any (${[...alongsideGenerations]}))`
      return Map.groupBy(rows, ({ database }) => database)
    },

    /** Returns the clusters of a region with several hosts, with the hosts of their services. */
    clusters: (region: string): Promise<StoredCluster[]> => readClusters(database, region),

    /** Creates a rebalance of these moves, and opens their new databases. @throws ControlError REBALANCE_IN_PROGRESS */
    async create(
      region: string,
      { moves, serviceMoves, switchovers }: PlannedRebalance,
      { transaction, audit }: RecordedWrite,
    ): Promise<Rebalance> {
      await lock(transaction, `rebalance:${region}`, `homes:${region}`)
      const open = await transaction.rebalance.findFirst({ where: { regionId: region, state: { in: openStates } } })
      if (open !== null)
        throw new ControlError('REBALANCE_IN_PROGRESS', `The rebalance ${open.id} is in progress in the region.`, {
          detail: { rebalance_id: open.id },
        })
      for (const target of new Set(moves.map(({ to }) => to))) await sharedDatabaseNamed(transaction, region, target)
      const id = randomUUID()
      const steps = [
        ...moves.map((move) => ({ kind: 'home', ...move })),
        ...serviceMoves.map((move) => ({ kind: 'service', ...move })),
        ...switchovers.map((move) => ({ kind: 'switchover', bytes: 0, ...move })),
      ]
      const row = await transaction.rebalance.create({
        data: {
          id,
          regionId: region,
          createdAt: now(),
          ...(steps.length === 0 ? { state: 'done', finishedAt: now() } : {}),
          moves: {
            create: steps.map(({ from, to, ...step }, position) => ({ position, ...step, source: from, target: to })),
          },
        },
        include: withMoves,
      })
      audit({ action: 'rebalance.create', target: id, detail: { region, moves: steps.length } })
      return toRebalance(row)
    },

    /** Returns a rebalance. @throws ControlError REBALANCE_NOT_FOUND */
    async get(region: string, id: string): Promise<Rebalance> {
      const row = isUuid(id)
        ? await database.rebalance.findUnique({ where: { id, regionId: region }, include: withMoves })
        : null
      if (row === null) throw notFound()
      return toRebalance(row)
    },

    /** Lists a region's rebalances, the newest first. */
    async list(region: string, { limit, cursor }: PageRequest): Promise<Page<Rebalance>> {
      const rows = await database.rebalance.findMany({
        where: {
          regionId: region,
          ...(cursor === undefined ? {} : beforePosition(decodeCursor(cursor, uuidPattern))),
        },
        orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
        take: limit + 1,
        include: withMoves,
      })
      return toPage(rows, limit, toRebalance)
    },

    /** Cancels a rebalance: no further move begins. @throws ControlError REBALANCE_NOT_FOUND, REBALANCE_FINISHED */
    async cancel(region: string, id: string, { transaction, audit }: RecordedWrite): Promise<Rebalance> {
      await lock(transaction, `rebalance:${region}`)
      const row = isUuid(id) ? await transaction.rebalance.findUnique({ where: { id, regionId: region } }) : null
      if (row === null) throw notFound()
      if (!openStates.some((state) => state === row.state))
        throw new ControlError('REBALANCE_FINISHED', `The rebalance has ended with the state "${row.state}".`)
      const canceled = await transaction.rebalance.update({
        where: { id },
        data: { state: 'canceling' },
        include: withMoves,
      })
      audit({ action: 'rebalance.cancel', target: id, detail: { region } })
      return toRebalance(canceled)
    },
  }
}

function notFound(): ControlError {
  return new ControlError('REBALANCE_NOT_FOUND', 'There is no such rebalance.')
}
