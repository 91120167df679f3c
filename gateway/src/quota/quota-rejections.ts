// The rejections of requests and connections when a quota or a rate is used up (specification, sections 7 and 8).
import type { Rejection } from '../errors.ts'

const rejected = { status: 429, error: 'too_many_requests', isQuota: true } as const

/** Converts milliseconds to whole seconds, at least one. */
function seconds(milliseconds: number): number {
  return Math.max(1, Math.ceil(milliseconds / 1_000))
}

/** Returns the limit's state as members of the error and as the headers that clients of other services know. */
function limitState(limit: number, used: number, resetIn: number, wall: number) {
  const remaining = Math.max(0, limit - used)
  const after = String(seconds(resetIn))
  return {
    detail: { limit, used, resets_at: new Date(wall + resetIn).toISOString() },
    headers: ['ratelimit-limit', String(limit), 'ratelimit-remaining', String(remaining), 'ratelimit-reset', after],
  }
}

/**
 * Returns the rejection of a request above the rate.
 * @param wait milliseconds until a request would be admitted
 * @param wall milliseconds since 1970
 */
export function rateLimited(perSecond: number, burst: number, wait: number, wall: number): Rejection {
  return {
    ...rejected,
    code: 'RATE_LIMITED',
    message: `The tenant allows ${perSecond} requests per second, in bursts of up to ${burst}.`,
    retryAfter: seconds(wait),
    ...limitState(burst, burst, wait, wall),
  }
}

export function requestsUsedUp(limit: number, used: number, resetIn: number, wall: number): Rejection {
  return {
    ...rejected,
    code: 'QUOTA_REQUESTS',
    message: `The plan's ${limit} requests of this month are used up.`,
    retryAfter: seconds(resetIn),
    ...limitState(limit, Math.max(limit, used), resetIn, wall),
  }
}

/**
 * Returns the rejection of a request of a tenant that has reached its spending limit. The amounts are not public.
 * @param resetIn milliseconds until the month's end
 * @param wall milliseconds since 1970
 */
export function spendingLimitReached(resetIn: number, wall: number): Rejection {
  return {
    status: 402,
    error: 'payment_required',
    code: 'SPENDING_LIMIT_REACHED',
    message: 'The tenant has reached its spending limit of this month.',
    isQuota: true,
    retryAfter: seconds(resetIn),
    detail: { resets_at: new Date(wall + resetIn).toISOString() },
  }
}

/** The gateway does not know whether the quota allows the request, so the status is not 429. */
const unknown = { status: 503, error: 'unavailable', isQuota: true } as const

export const requestsNotLeased: Rejection = {
  ...unknown,
  code: 'QUOTA_UNAVAILABLE',
  message: 'The gateway currently cannot check whether the plan has remaining requests.',
  retryAfter: 1,
}

export const connectionsNotLeased: Rejection = {
  ...unknown,
  code: 'QUOTA_UNAVAILABLE',
  message: 'The gateway currently cannot check whether the plan allows another long-lived connection.',
  retryAfter: 1,
}

/**
 * Returns the rejection of a connection above the plan's limit.
 * @param limit the plan's limit, which is reached
 */
export function connectionsTaken(limit: number, open: number): Rejection {
  return {
    ...rejected,
    code: 'QUOTA_CONNECTIONS',
    message: `The plan's ${limit} long-lived connections are all open.`,
    retryAfter: 5,
    detail: { limit, used: open, resets_at: null },
  }
}
