// What those who start functions by triggers work with, and how they tell a failure of the function from one of ours.
import { RuntimeError } from '../../errors.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { Call } from '../invocations/invoke.ts'

export interface DispatchPace {
  /** Milliseconds between two looks for deliveries that others wrote. */
  poll: number
  /** So long a runtime that is gone keeps others from delivering. */
  lease: number
  /** Until what failed here (the database, a full queue) is tried again. */
  again: number
}

export const defaultDispatchPace: DispatchPace = { poll: 1_000, lease: 10_000, again: 2_000 }

export interface DispatchDeps {
  /** Names this process among those that serve the same tenants. */
  holder: string
  tenantOf: (tenantId: string) => Tenant | undefined
  /** Throws what `invoke` throws; resolves with the status that the function answered. */
  invoke: (tenant: Tenant, call: Omit<Call, 'log'>) => Promise<number>
  now: () => Date
  /** From 0 to 1. */
  random: () => number
  /** Milliseconds, monotonic. */
  elapsed: () => number
  pace: DispatchPace
  onError: (error: Error) => void
}

/** The function is deleted or disabled. */
export function isGone(error: unknown): boolean {
  return error instanceof RuntimeError && error.code === 'NO_SUCH_FUNCTION'
}

/** The run is what failed, and its record says so; anything else (a full queue, the database) is tried again without counting. */
export function isFailedRun(error: unknown): error is RuntimeError {
  return error instanceof RuntimeError && error.status !== 503
}
