// Plans which homes move out of shared databases that exceed a limit, and to which ones. Pure.
import { exceededLimits, type DatabaseLoad } from './rebalance.ts'

/** A home that can be moved now. */
export interface MovableHome {
  tenantId: string
  bytes: number
}

/** A database with its homes that can be moved. */
export interface MeasuredDatabase extends DatabaseLoad {
  bytes: number
  movable: readonly MovableHome[]
}

export interface PlannedMove {
  tenantId: string
  from: string
  to: string
  bytes: number
}

export interface RebalancePlan {
  moves: PlannedMove[]
  /** The databases as they are after the moves, also those that the moves open. */
  after: DatabaseAfter[]
}

interface DatabaseAfter extends DatabaseLoad {
  bytes: number
}

/** The moves of one plan. A further plan continues. */
export const maxPlannedMoves = 200

/** The part of a limit to which a database is relieved or filled, so that it does not soon exceed the limit again. */
const fill = 0.9

/**
 * Plans the moves that relieve the databases. As few homes as possible leave a database that is too large, and the smallest ones
 * one with too many homes. Each goes to the emptiest database that has room for it, or to a new one.
 * @param open returns the region's next database, of which `count` are opened before
 */
export function planMoves(
  databases: readonly MeasuredDatabase[],
  open: (count: number) => { name: string; maxHomes: number },
): RebalancePlan {
  const after: DatabaseAfter[] = databases.map(({ name, homes, maxHomes, bytes, maxBytes }) => ({
    name,
    homes,
    maxHomes,
    bytes,
    maxBytes,
  }))
  const sources = after.filter((database) => exceededLimits(database).length > 0)
  const moves: PlannedMove[] = []
  let opened = 0
  for (const source of sources) {
    const left = new Set(databases.find(({ name }) => name === source.name)?.movable)
    while (moves.length < maxPlannedMoves) {
      const home = nextHome(source, left)
      if (home === undefined) break
      left.delete(home)
      let target = roomiest(after, sources, home)
      if (target === undefined) {
        target = { ...open(opened++), homes: 0, bytes: 0, maxBytes: undefined }
        after.push(target)
      }
      moves.push({ ...home, from: source.name, to: target.name })
      source.homes--
      source.bytes -= home.bytes
      target.homes++
      target.bytes += home.bytes
    }
  }
  return { moves, after }
}

/** Returns the home that leaves next; undefined when the database is relieved, or has no more homes to move. */
function nextHome(source: DatabaseAfter, left: ReadonlySet<MovableHome>): MovableHome | undefined {
  const tooMany = source.homes - fill * source.maxHomes
  const tooMuch = source.maxBytes === undefined ? 0 : source.bytes - fill * source.maxBytes
  const bySize = [...left].sort((a, b) => a.bytes - b.bytes || (a.tenantId < b.tenantId ? -1 : 1))
  if (tooMuch > 0) return bySize.find(({ bytes }) => bytes >= tooMuch) ?? bySize.at(-1)
  return tooMany > 0 ? bySize[0] : undefined
}

/** Returns the emptiest database that stays below its limits with the home. */
function roomiest(
  databases: readonly DatabaseAfter[],
  sources: readonly DatabaseAfter[],
  home: MovableHome,
): DatabaseAfter | undefined {
  return databases
    .filter((database) => !sources.includes(database))
    .map((database) => ({ database, part: filledPart(database, home) }))
    .filter(({ part }) => part <= fill)
    .sort((a, b) => a.part - b.part)[0]?.database
}

/** Returns which part of its limits a database uses with one more home. */
function filledPart({ homes, maxHomes, bytes, maxBytes }: DatabaseAfter, home: MovableHome): number {
  return Math.max((homes + 1) / maxHomes, maxBytes === undefined ? 0 : (bytes + home.bytes) / maxBytes)
}
