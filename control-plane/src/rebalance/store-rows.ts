// Reads shared databases, and converts rows of them and of rebalances to the types of the control plane.
import type {
  RebalanceMove as MoveRow,
  Rebalance as RebalanceRow,
  SharedDatabase as DatabaseRow,
} from '../../../prisma/client/client.ts'
import type { Database } from '../platform/database.ts'
import type { DatabaseLoad, Rebalance, RebalanceMove, RebalanceState } from './rebalance.ts'

/** A shared database, and when it was measured. */
export interface StoredDatabase extends DatabaseLoad {
  measuredAt: Date | undefined
}

export const withHomes = { _count: { select: { tenants: true } } } as const
export const withMoves = { moves: { orderBy: { position: 'asc' } } } as const
export const openStates: RebalanceState[] = ['running', 'canceling']

export function toRebalance({ regionId, finishedAt, moves, ...row }: RebalanceRow & { moves: MoveRow[] }): Rebalance {
  // Check constraints limit the two columns `state` to their values.
  const state = row.state as RebalanceState
  return { ...row, region: regionId, state, moves: moves.map(toMove), finishedAt: finishedAt ?? undefined }
}

function toMove({
  position,
  tenantId,
  source,
  target,
  bytes,
  state,
  operationId,
  error,
  ...row
}: MoveRow): RebalanceMove {
  return {
    position,
    tenantId,
    // A check constraint limits the column to its values.
    kind: row.kind as RebalanceMove['kind'],
    service: row.service ?? undefined,
    targetService: row.targetService ?? undefined,
    from: source,
    to: target,
    bytes: Number(bytes),
    state: state as RebalanceMove['state'],
    operationId: operationId ?? undefined,
    error: error ?? undefined,
  }
}

export function toDatabase({
  name,
  capacity,
  maxBytes,
  bytes,
  measuredAt,
  _count: homes,
}: DatabaseRow & { _count: { tenants: number } }): StoredDatabase {
  return {
    name,
    homes: homes.tenants,
    maxHomes: capacity,
    bytes: bytes === null ? undefined : Number(bytes),
    maxBytes: maxBytes === null ? undefined : Number(maxBytes),
    measuredAt: measuredAt ?? undefined,
  }
}

/** Reads a region's shared databases in the order of their creation. */
export async function readDatabases(database: Database, regionId: string): Promise<StoredDatabase[]> {
  const orderBy = { createdAt: 'asc' } as const
  return (await database.sharedDatabase.findMany({ where: { regionId }, orderBy, include: withHomes })).map(toDatabase)
}
