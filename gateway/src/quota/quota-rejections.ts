// What a tenant's client is told when a quota or a rate is used up (specification, sections 7 and 8).
import type { Rejection } from '../errors.ts'

const rejected = { status: 429, error: 'too_many_requests', isQuota: true } as const

/** Milliseconds → whole seconds, at least one. */
function seconds(milliseconds: number): number {
  return Math.max(1, Math.ceil(milliseconds / 1_000))
}

/** Sent beside the error's members, and as the headers that clients of other services know. */
function present(limit: number, used: number, resetIn: number, wall: number) {
  const remaining = Math.max(0, limit - used)
  const after = String(seconds(resetIn))
  return {
    detail: { limit, used, resets_at: new Date(wall + resetIn).toISOString() },
    headers: ['ratelimit-limit', String(limit), 'ratelimit-remaining', String(remaining), 'ratelimit-reset', after],
  }
}

/** @param wait milliseconds until a request would be let in @param wall milliseconds since 1970 */
export function rateLimited(perSecond: number, burst: number, wait: number, wall: number): Rejection {
  return {
    ...rejected,
    code: 'RATE_LIMITED',
    message: `The tenant may be asked ${perSecond} times a second, and ${burst} times at once.`,
    retryAfter: seconds(wait),
    ...present(burst, burst, wait, wall),
  }
}

export function requestsUsedUp(limit: number, used: number, resetIn: number, wall: number): Rejection {
  return {
    ...rejected,
    code: 'QUOTA_REQUESTS',
    message: `The plan's ${limit} requests of this month are used up.`,
    retryAfter: seconds(resetIn),
    ...present(limit, Math.max(limit, used), resetIn, wall),
  }
}

/** Nobody can say for now whether the quota allows it, so it is no 429. */
const unknown = { status: 503, error: 'unavailable', isQuota: true } as const

export const requestsNotLeased: Rejection = {
  ...unknown,
  code: 'QUOTA_UNAVAILABLE',
  message: 'Whether the plan has requests left cannot be found out for now.',
  retryAfter: 1,
}

export const connectionsNotLeased: Rejection = {
  ...unknown,
  code: 'QUOTA_UNAVAILABLE',
  message: 'Whether the plan has room for one more connection that stays open cannot be found out for now.',
  retryAfter: 1,
}

/** @param limit of the plan; all are taken */
export function connectionsTaken(limit: number, open: number): Rejection {
  return {
    ...rejected,
    code: 'QUOTA_CONNECTIONS',
    message: `The plan allows ${limit} connections that stay open at once; as many are open.`,
    retryAfter: 5,
    detail: { limit, used: open, resets_at: null },
  }
}
