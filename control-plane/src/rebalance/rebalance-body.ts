// The bodies of shared databases, of plans and of rebalances.
import { Type, type Static } from 'typebox'
import {
  maxPlannedHostMoves,
  type HostPlan,
  type PlannedServiceMove,
  type PlannedSwitchover,
} from './plan-host-moves.ts'
import { maxPlannedMoves, type RebalancePlan } from './plan-moves.ts'
import {
  exceededLimits,
  rebalanceMoveStates,
  rebalanceStates,
  type DatabaseLoad,
  type Rebalance,
  type RebalanceMove,
} from './rebalance.ts'
import type { StoredDatabase } from './store-rows.ts'

const Maybe = Type.Union([Type.String(), Type.Null()])

/** The fields of a shared database, as it is and as it would be. */
const load = {
  name: Type.String(),
  homes: Type.Integer({ description: 'Homes of tenants, and those that are made in advance' }),
  max_homes: Type.Integer(),
  max_bytes: Type.Union([Type.Integer(), Type.Null()], { description: 'null is unlimited' }),
  exceeds: Type.Array(Type.Enum(['homes', 'bytes']), { description: 'The limits that the database exceeds' }),
}

/** Body of a shared database. */
export const DatabaseBody = Type.Object({
  ...load,
  bytes: Type.Union([Type.Integer(), Type.Null()], { description: 'null before the first measurement' }),
  measured_at: Type.Union([Type.String(), Type.Null()], { description: 'ISO 8601, UTC' }),
})

const MoveBody = Type.Object({
  tenant_id: Type.String(),
  from: Type.String(),
  to: Type.String(),
  bytes: Type.Integer({ description: 'The size of the home when the move was planned' }),
})

const HostName = Type.String({ description: 'ID of the host in its region' })

const ServiceMoveBody = Type.Object({
  tenant_id: Type.String(),
  service: Type.String(),
  from: HostName,
  to: HostName,
  memory_bytes: Type.Integer({ description: 'The memory that the service reserves' }),
})

const SwitchoverBody = Type.Object({
  tenant_id: Type.String(),
  from: Type.String({ description: 'The service of the primary' }),
  to: Type.String({ description: 'The service of the member that becomes the primary' }),
  from_host: HostName,
  to_host: HostName,
})

/** The progress of a move. */
const progress = {
  state: Type.Enum([...rebalanceMoveStates]),
  operation_id: Maybe,
  error: Type.Union([Type.String(), Type.Null()], { description: 'The reason for `failed` and `skipped`' }),
}

/** Body of a plan. */
export const PlanBody = Type.Object({
  region: Type.String(),
  moves: Type.Array(MoveBody, { description: `At most ${maxPlannedMoves}` }),
  databases_after: Type.Array(Type.Object({ ...load, bytes: Type.Integer() }), {
    description: 'The databases as they would be, also those that would be opened',
  }),
  service_moves: Type.Array(ServiceMoveBody, {
    description: `Moves of services of clusters between hosts, at most ${maxPlannedHostMoves}; none in a region with one host`,
  }),
  switchovers: Type.Array(SwitchoverBody, {
    description: `Switchovers that spread the primaries of clusters, at most ${maxPlannedHostMoves}; none in a region with one host`,
  }),
  hosts_after: Type.Array(
    Type.Object({
      id: HostName,
      zone: Maybe,
      memory_bytes: Type.Integer({ description: 'The memory that services of tenants can reserve' }),
      free_bytes: Type.Integer({ description: 'The part of it that none reserves' }),
      services: Type.Integer({ description: 'Services of clusters' }),
      primaries: Type.Integer({ description: 'Primaries of clusters that are ready' }),
    }),
    { description: 'The hosts that receive services, as they would be; none in a region with one host' },
  ),
})

/** Body of a rebalance with its moves. */
export const RebalanceBody = Type.Object({
  id: Type.String(),
  region: Type.String(),
  state: Type.Enum([...rebalanceStates]),
  moves: Type.Array(Type.Object({ ...MoveBody.properties, ...progress })),
  service_moves: Type.Array(Type.Object({ ...ServiceMoveBody.properties, ...progress })),
  switchovers: Type.Array(Type.Object({ ...SwitchoverBody.properties, ...progress })),
  created: Type.String({ description: 'ISO 8601, UTC' }),
  finished: Maybe,
})

function presentLoad(database: DatabaseLoad) {
  return {
    name: database.name,
    homes: database.homes,
    max_homes: database.maxHomes,
    max_bytes: database.maxBytes ?? null,
    exceeds: exceededLimits(database),
  }
}

/** Converts a shared database to its body. */
export function presentDatabase({ measuredAt, ...database }: StoredDatabase) {
  return {
    ...presentLoad(database),
    bytes: database.bytes ?? null,
    measured_at: measuredAt?.toISOString() ?? null,
  }
}

/** Converts a plan to its body. */
export function presentPlan(
  region: string,
  { moves, after }: RebalancePlan,
  { serviceMoves, switchovers, after: hosts }: HostPlan,
): Static<typeof PlanBody> {
  return {
    region,
    moves: moves.map(({ tenantId, from, to, bytes }) => ({ tenant_id: tenantId, from, to, bytes })),
    databases_after: after.map((database) => ({ ...presentLoad(database), bytes: Math.max(0, database.bytes) })),
    service_moves: serviceMoves.map(presentServiceMove),
    switchovers: switchovers.map(presentSwitchover),
    hosts_after: hosts.map(({ id, zone, totalBytes, freeBytes, services, primaries }) => ({
      id,
      zone: zone ?? null,
      memory_bytes: totalBytes,
      free_bytes: freeBytes,
      services,
      primaries,
    })),
  }
}

/** Converts a rebalance to its body. */
export function present({ id, region, state, moves, createdAt, finishedAt }: Rebalance): Static<typeof RebalanceBody> {
  const progressOf = ({ state, operationId, error }: RebalanceMove) => ({
    state,
    operation_id: operationId ?? null,
    error: error ?? null,
  })
  const of = (wanted: RebalanceMove['kind']) => moves.filter(({ kind }) => kind === wanted)
  return {
    id,
    region,
    state,
    moves: of('home').map((move) => ({
      tenant_id: move.tenantId,
      from: move.from,
      to: move.to,
      bytes: move.bytes,
      ...progressOf(move),
    })),
    service_moves: of('service').map((move) => ({ ...presentServiceMove(move), ...progressOf(move) })),
    switchovers: of('switchover').map((move) => ({ ...presentSwitchover(move), ...progressOf(move) })),
    created: createdAt.toISOString(),
    finished: finishedAt?.toISOString() ?? null,
  }
}

function presentServiceMove({ tenantId, service = '', from, to, bytes }: PlannedServiceMove | RebalanceMove) {
  return { tenant_id: tenantId, service, from, to, memory_bytes: bytes }
}

function presentSwitchover(move: PlannedSwitchover | RebalanceMove) {
  const { tenantId, service = '', targetService = '', from, to } = move
  return { tenant_id: tenantId, from: service, to: targetService, from_host: from, to_host: to }
}
