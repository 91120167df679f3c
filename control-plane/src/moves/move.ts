// A move of a home between two databases, as its operation stores it, and its phases. Pure.
import { Type, type Static } from 'typebox'
import { isolationModels, type Isolation, type OwnIsolation } from '../stacks/index.ts'

/** The phases in their order. They are the steps of the operation. */
export const phases = ['prepare', 'copy', 'catch up', 'compare', 'hold', 'switch', 'done'] as const
export type Phase = (typeof phases)[number]

/** A replica identity of a table that the move has changed to FULL, and that is restored at its end. */
const Identity = Type.Object({ table: Type.String(), was: Type.Enum(['d', 'n']) })
export type Identity = Static<typeof Identity>

/** The time after a move in which changes flow back into the old home, so that the move can be reverted. */
const Reverse = Type.Object({
  /** The end of that time, as ISO 8601. */
  until: Type.String(),
  /** The reason for which it ends; absent before its end. */
  ends: Type.Optional(Type.String()),
  /** Whether the old home and everything else of it is removed. */
  removed: Type.Optional(Type.Boolean()),
})

/** The column `move` of an operation. */
export const MoveColumn = Type.Object({
  region: Type.String(),
  /** The region after a move to another one. */
  toRegion: Type.Optional(Type.String()),
  from: Type.String(),
  to: Type.String(),
  /** The isolation model that the tenant has before a move to another one. */
  fromIsolation: Type.Optional(Type.Enum(isolationModels)),
  /** The isolation model that the tenant has after the move; absent: the one that it has. */
  toIsolation: Type.Optional(Type.Enum(isolationModels)),
  /** Whether the files stay in a store of both ends, or are copied. Absent: nothing was copied yet, or the ends share runtimes. */
  files: Type.Optional(Type.Enum(['stay', 'copied'])),
  identities: Type.Optional(Type.Array(Identity)),
  /** Replica identities of the new home, which are other ones as long as changes flow back from it. */
  newIdentities: Type.Optional(Type.Array(Identity)),
  /** The operation of the move that this one reverts. */
  reverts: Type.Optional(Type.String()),
  /** Whether the old home stays for a revert, as far as the settings allow it. Absent: it does. */
  isReversible: Type.Optional(Type.Boolean()),
  /** The reason for which the move has no reverse. */
  notRevertible: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  reverse: Type.Optional(Reverse),
  /** Whether an operator has canceled the move. */
  canceled: Type.Optional(Type.Boolean()),
  /** Whether nothing of the move is left to do or to remove. */
  settled: Type.Optional(Type.Boolean()),
})
type MoveColumn = Static<typeof MoveColumn>
export type FileMove = NonNullable<MoveColumn['files']>

/** The region and the isolation of a tenant, and the database of its home. */
export interface HomeLocation {
  regionId: string
  isolation: Isolation
  /** The shared database; undefined for a home of the tenant's own. */
  database?: string | undefined
}

/** Whether a home is where a move brings it from. */
export function isAtOrigin({ region, from, fromIsolation }: MoveColumn, home: HomeLocation): boolean {
  return home.regionId === region && isAt(from, fromIsolation, home)
}

/** Whether a home is where a move brings it. */
export function isAtDestination(move: MoveColumn, home: HomeLocation): boolean {
  return home.regionId === regionAfter(move) && isAt(move.to, move.toIsolation, home)
}

/** Returns the ID of the region to which a move leads. */
export function regionAfter({ region, toRegion = region }: Pick<MoveColumn, 'region' | 'toRegion'>): string {
  return toRegion
}

/** Whether the home leaves its Postgres server and its runtimes. Otherwise it moves between two databases of one server. */
export function changesServer({ fromIsolation, toIsolation, toRegion }: MoveColumn): boolean {
  return isOwn(fromIsolation) || isOwn(toIsolation) || toRegion !== undefined
}

function isAt(database: string, isolation: Isolation | undefined, home: HomeLocation): boolean {
  return isOwn(isolation) ? home.isolation === isolation : home.database === database
}

/** Whether a model before or after a move has services of the tenant's own; undefined is that of a move between shared databases. */
export function isOwn(isolation: Isolation | undefined): isolation is OwnIsolation {
  return isolation !== undefined && isolation !== 'schema-per-tenant'
}

/** A move that is not settled. */
export interface MoveJob extends MoveColumn {
  operationId: string
  tenantId: string
  state: string
  step: string | undefined
  attempts: number
}

/** A move whose old home is not removed yet. */
export interface ReverseJob extends MoveJob {
  reverse: Static<typeof Reverse>
}

/** The progress of a move, for the readers of its operation. */
export interface Progress {
  rows?: number
  bytes?: number
  pending_bytes?: number
  waits_for?: string | null
}

/** Whether the work continues: the operation is open, and no operator has canceled it. */
export function isWanted({ state, canceled = false }: Pick<MoveJob, 'state' | 'canceled'>): boolean {
  return (state === 'pending' || state === 'running') && !canceled
}

/** Whether the last recorded phase is one in which requests are held, and the switch may have happened. */
export function isHeld({ step }: Pick<MoveJob, 'step'>): boolean {
  return step === 'hold' || step === 'switch'
}

/** Returns the reason for which a move can never be reverted; undefined if there is none. */
export function neverRevertible({ fromIsolation, toIsolation, isReversible = true }: MoveColumn): string | undefined {
  if (isOwn(fromIsolation) && isOwn(toIsolation))
    return "A move between a Postgres and a cluster of the tenant's own cannot be reverted."
  return isReversible ? undefined : 'The moves of a rebalance cannot be reverted.'
}

/** A stream of the changes of a home out of its database. */
export interface Stream {
  slot: string
  publication: string
  /** Whether it begins after a move and leads back into the old home. */
  isReverse: boolean
}

/** Returns the stream of a move, or the one after it that leads back. */
export function streamOf(tenantId: string, direction: 'move' | 'reverse'): Stream {
  const name = `tenantry_${direction}_${tenantId.slice(2)}`
  return { slot: name, publication: name, isReverse: direction === 'reverse' }
}

/** Names of the logins that exist during a move. They derive from the tenant's ID only. */
export function namesOf(tenantId: string) {
  const hex = tenantId.slice(2)
  return {
    /** The login that reads the source, the one that reads the copy, and the one that changes the copy. */
    source: `tenantry_move_source_${hex}`,
    target: `tenantry_move_target_${hex}`,
    apply: `tenantry_move_apply_${hex}`,
  }
}

/** Comment of the schema that a move has left, by which a later control plane knows that the switch happened. */
export function markOf({ operationId }: Pick<MoveJob, 'operationId'>): string {
  return `moved by ${operationId}`
}
