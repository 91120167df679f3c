// What runtimes and the egress proxy of their gateway agree on. A runtime sends CONNECT with a token in Proxy-Authorization.
import type { TenantId } from './ids.ts'
import { tenantToken } from './tenant-token.ts'

/** Header of a rejected CONNECT request, with one of `egressErrors` as its value. */
export const egressErrorHeader = 'tenantry-egress-error'

/** Codes of rejected CONNECT requests, and the status of each. */
export const egressErrors = {
  /** The destination is not `host:port`, or its port is not allowed. */
  DESTINATION_INVALID: 400,
  /** An address of the host is not allowed, or the token does not allow the host. */
  ADDRESS_REJECTED: 403,
  /** The token is missing or wrong. */
  TOKEN_INVALID: 407,
  /** The caller has its maximum of connections, or opens them too fast. */
  EGRESS_BUSY: 503,
  /** The host name does not exist. */
  HOST_UNKNOWN: 502,
  /** The host name could not be looked up, or no connection was made. */
  CONNECT_FAILED: 502,
} as const
/** One of the codes of `egressErrors`. */
export type EgressErrorCode = keyof typeof egressErrors

/**
 * Returns the token with which a runtime connects for a tenant.
 * @param token the runtime's own: the installation's, from which the tenant's is derived, or already the tenant's
 */
export function egressToken(token: string, tenantId: TenantId): string {
  return token.startsWith(`${tenantId}.`) ? token : tenantToken(token, tenantId)
}
