// All errors that the gateway itself returns: status, tag, code and public message (specification, section 7).
import type { ErrorBody, Route } from '@tenantry/contract'

/** A response of the gateway's own instead of a runtime's. */
export interface Rejection {
  readonly status: number
  /** The short tag of the error. */
  readonly error: string
  readonly code: string
  /** The public message, which never names addresses or other tenants. */
  readonly message: string
  /** Seconds, sent as `Retry-After`. */
  readonly retryAfter?: number
  /** True closes the connection after the response, because it cannot be trusted or used any further. */
  readonly close?: true
  /**
   * True for a quota or a rate limit: metering counts it separately from requests, and no tenant is charged for its bytes.
   */
  readonly isQuota?: true
  /** Additional members of the body. */
  readonly detail?: Readonly<Record<string, string | number | null>>
  /** Additional headers as a list of names and values. */
  readonly headers?: readonly string[]
}

const bad = { status: 400, error: 'bad_request' } as const

export const rejections = {
  malformedRequest: { ...bad, code: 'MALFORMED_REQUEST', message: 'The request is not valid HTTP/1.1.', close: true },
  invalidFraming: {
    ...bad,
    code: 'INVALID_FRAMING',
    message: 'The length of the body must be given once, by Content-Length or by Transfer-Encoding: chunked.',
    close: true,
  },
  chunksTooSmall: {
    ...bad,
    code: 'CHUNKS_TOO_SMALL',
    message: 'The sizes and extensions of the chunks have far more bytes than the body. Send larger chunks.',
    close: true,
  },
  invalidHost: { ...bad, code: 'INVALID_HOST', message: 'Exactly one valid Host header is required.', close: true },
  invalidTarget: {
    ...bad,
    code: 'INVALID_TARGET',
    message: 'The request target must be a path, or an absolute http URL of the same host.',
    close: true,
  },
  tenantNotFound: { status: 404, error: 'not_found', code: 'TENANT_NOT_FOUND', message: 'No such tenant.' },
  notFound: { status: 404, error: 'not_found', code: 'NOT_FOUND', message: 'Nothing is served at this address.' },
  addressBlocked: {
    status: 403,
    error: 'forbidden',
    code: 'ADDRESS_BLOCKED',
    message: "The operator has blocked the client's address.",
  },
  internalTokenWrong: {
    status: 403,
    error: 'forbidden',
    code: 'FORBIDDEN',
    message: 'The internal token is missing or not valid for this request.',
  },
  internalMethodNotAllowed: {
    status: 405,
    error: 'method_not_allowed',
    code: 'METHOD_NOT_ALLOWED',
    message: 'This address is not served with that method.',
  },
  connectRejected: {
    status: 405,
    error: 'method_not_allowed',
    code: 'METHOD_NOT_ALLOWED',
    message: 'CONNECT is not served.',
    close: true,
  },
  bodyTimeout: {
    status: 408,
    error: 'request_timeout',
    code: 'REQUEST_TIMEOUT',
    message: 'The request did not arrive in time.',
    close: true,
  },
  bodyTooSlow: {
    status: 408,
    error: 'request_timeout',
    code: 'BODY_TOO_SLOW',
    message: 'The body arrived too slowly. It must not be more than 30 s behind 1000 bytes per second.',
    close: true,
  },
  urlTooLong: {
    status: 414,
    error: 'uri_too_long',
    code: 'URL_TOO_LONG',
    message: 'The URL is longer than 65536 bytes.',
    close: true,
  },
  expectationFailed: {
    status: 417,
    error: 'expectation_failed',
    code: 'EXPECTATION_FAILED',
    message: 'Expect may only be 100-continue.',
    close: true,
  },
  headersTooLarge: {
    status: 431,
    error: 'headers_too_large',
    code: 'HEADERS_TOO_LARGE',
    message: 'The request headers are larger than 16384 bytes.',
    close: true,
  },
  badGateway: {
    status: 502,
    error: 'bad_gateway',
    code: 'BAD_GATEWAY',
    message: "The tenant's runtime closed the connection or sent an invalid response.",
  },
  tenantNotReady: {
    status: 503,
    error: 'unavailable',
    code: 'TENANT_NOT_READY',
    message: 'The tenant is being prepared and cannot be reached yet.',
    retryAfter: 1,
  },
  tenantWaking: {
    status: 503,
    error: 'unavailable',
    code: 'TENANT_WAKING',
    message: 'The tenant was paused and is being woken; it did not become ready in time.',
    retryAfter: 2,
  },
  tooManyWaiting: {
    status: 503,
    error: 'unavailable',
    code: 'TOO_MANY_WAITING',
    message: 'The tenant is not ready yet, and too many requests wait for it already.',
    retryAfter: 2,
  },
  wakeRejected: {
    status: 503,
    error: 'unavailable',
    code: 'TENANT_NOT_WOKEN',
    message: 'The tenant is paused and cannot be woken for now.',
    retryAfter: 5,
  },
  controlFailed: {
    status: 502,
    error: 'bad_gateway',
    code: 'CONTROL_FAILED',
    message: 'The control plane closed the connection or did not respond in time.',
  },
  controlUnreachable: {
    status: 503,
    error: 'unavailable',
    code: 'CONTROL_UNREACHABLE',
    message: 'The control plane cannot be reached for now.',
    retryAfter: 1,
  },
  tooManyWatches: {
    status: 503,
    error: 'unavailable',
    code: 'TOO_MANY_WATCHES',
    message: 'The tenant has the maximum number of open watches.',
    retryAfter: 5,
  },
  runtimeUnreachable: {
    status: 503,
    error: 'unavailable',
    code: 'RUNTIME_UNREACHABLE',
    message: "The tenant's runtime cannot be reached for now.",
    retryAfter: 1,
  },
  gatewayBusy: {
    status: 503,
    error: 'unavailable',
    code: 'GATEWAY_BUSY',
    message: 'The gateway has the maximum number of connections.',
    retryAfter: 1,
  },
  runtimeTimeout: {
    status: 504,
    error: 'gateway_timeout',
    code: 'RUNTIME_TIMEOUT',
    message: "The tenant's runtime did not respond in time.",
  },
} as const satisfies Record<string, Rejection>

/** Returns the rejection of a suspended tenant's requests. The route's `reason` is the operator's public text. */
export function tenantSuspended({ reason, payment_required }: Route): Rejection {
  return {
    ...(payment_required === true
      ? { status: 402, error: 'payment_required', code: 'PAYMENT_REQUIRED' }
      : { status: 403, error: 'forbidden', code: 'TENANT_SUSPENDED' }),
    message: reason === undefined || reason === '' ? 'The tenant is suspended.' : `The tenant is suspended: ${reason}`,
  }
}

/** The rejection of a tenant's request beyond its share of the requests in progress. */
export const tenantBusy: Rejection = {
  status: 503,
  error: 'unavailable',
  code: 'TENANT_BUSY',
  message: 'The tenant has its maximum of requests in progress at this gateway.',
  retryAfter: 1,
  isQuota: true,
}

/** The rejection of a client's request beyond its share of the requests in progress. */
export const clientBusy: Rejection = {
  status: 429,
  error: 'too_many_requests',
  code: 'CLIENT_BUSY',
  message: "The client's address has its maximum of requests in progress at this gateway.",
  retryAfter: 1,
  isQuota: true,
}

/**
 * Returns the rejection of a request of a client address with too many rejected requests.
 * @param wait milliseconds until a request is accepted again
 */
export function tooManyRejections(wait: number): Rejection {
  return {
    status: 429,
    error: 'too_many_requests',
    code: 'TOO_MANY_REJECTIONS',
    message: "Too many requests of the client's address were rejected.",
    retryAfter: Math.max(1, Math.ceil(wait / 1_000)),
    isQuota: true,
  }
}

/**
 * Returns the rejection of a connection of a client address that has the maximum.
 * @param limit the maximum
 */
export function tooManyConnections(limit: number): Rejection {
  return {
    status: 429,
    error: 'too_many_requests',
    code: 'TOO_MANY_CONNECTIONS',
    message: `The client's address has ${limit} connections open, which is the maximum.`,
    retryAfter: 1,
    close: true,
  }
}

/** Returns the rejection that a tenant's phase requires, or undefined when the gateway forwards the request. */
export function rejectionOfPhase(route: Route): Rejection | undefined {
  switch (route.phase) {
    case 'ready':
      return route.runtimes.length === 0 ? rejections.tenantNotReady : undefined
    case 'pending':
      return rejections.tenantNotReady
    case 'paused':
      return rejections.tenantWaking
    case 'suspended':
      return tenantSuspended(route)
    case 'deleted':
      return rejections.tenantNotFound
  }
}

export function errorBody(rejection: Rejection): ErrorBody & Record<string, unknown> {
  return {
    statusCode: String(rejection.status),
    error: rejection.error,
    message: rejection.message,
    code: rejection.code,
    ...rejection.detail,
  }
}
