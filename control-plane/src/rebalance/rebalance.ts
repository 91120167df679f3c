// A rebalance of a region's shared databases and hosts, as the control database stores it. Pure.

export const rebalanceStates = ['running', 'canceling', 'done', 'canceled'] as const
export type RebalanceState = (typeof rebalanceStates)[number]

export const rebalanceMoveStates = ['waiting', 'moving', 'moved', 'failed', 'skipped'] as const

/** The move of one home or service, or one switchover, as a part of a rebalance. */
export interface RebalanceMove {
  position: number
  tenantId: string
  kind: 'home' | 'service' | 'switchover'
  /** The service that moves, or that of the primary; undefined for a home. */
  service: string | undefined
  /** The service of the member that becomes the primary; undefined without a switchover. */
  targetService: string | undefined
  /** Shared databases of a home, hosts otherwise. */
  from: string
  to: string
  /** The size of the home, or the memory of the service, when the rebalance was planned; 0 for a switchover. */
  bytes: number
  state: (typeof rebalanceMoveStates)[number]
  /** The operation of the kind `move`, `move_service` or `switchover`; undefined before it begins. */
  operationId: string | undefined
  /** The reason for `failed` and `skipped`. */
  error: string | undefined
}

export interface Rebalance {
  id: string
  region: string
  state: RebalanceState
  moves: RebalanceMove[]
  createdAt: Date
  finishedAt: Date | undefined
}

/** A shared database with its limits, and its size at the last measurement. */
export interface DatabaseLoad {
  name: string
  homes: number
  maxHomes: number
  /** Undefined before the first measurement. */
  bytes: number | undefined
  /** Undefined is unlimited. */
  maxBytes: number | undefined
}

export type DatabaseLimit = 'homes' | 'bytes'

/** Returns the limits that a database exceeds. */
export function exceededLimits({ homes, maxHomes, bytes, maxBytes }: DatabaseLoad): DatabaseLimit[] {
  return [
    ...(homes > maxHomes ? (['homes'] as const) : []),
    ...(bytes !== undefined && maxBytes !== undefined && bytes > maxBytes ? (['bytes'] as const) : []),
  ]
}
