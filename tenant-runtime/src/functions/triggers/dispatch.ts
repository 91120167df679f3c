// Dependencies of the dispatchers of triggers, and the distinction between failures of functions and of the runtime.
import { RuntimeError } from '../../errors.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { Call } from '../invocations/invoke.ts'

export interface DispatchPace {
  /** Milliseconds between two polls for deliveries that other processes wrote. */
  poll: number
  /** Milliseconds of the lease, after which another runtime can take over from one that has ended. */
  lease: number
  /** Milliseconds until a retry after a failure of the runtime (the database, a full queue). */
  retry: number
}

export const defaultDispatchPace: DispatchPace = { poll: 1_000, lease: 10_000, retry: 2_000 }

export interface DispatchDeps {
  /** Identifies this process among those that serve the same tenants. */
  holder: string
  tenantOf: (tenantId: string) => Tenant | undefined
  /** Invokes a function and returns the status of its response. Throws the errors of `invoke`. */
  invoke: (tenant: Tenant, call: Omit<Call, 'log'>) => Promise<number>
  now: () => Date
  /** Returns a random number from 0 to 1. */
  random: () => number
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  pace: DispatchPace
  onError: (error: Error) => void
}

/** Whether the function was deleted or disabled. */
export function isGone(error: unknown): boolean {
  return error instanceof RuntimeError && error.code === 'NO_SUCH_FUNCTION'
}

/** Whether the run itself failed. Other failures (a full queue, the database) are retried and do not count as attempts. */
export function isFailedRun(error: unknown): error is RuntimeError {
  return error instanceof RuntimeError && error.status !== 503
}
