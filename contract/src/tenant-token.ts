// The token between the installation and one tenant's own runtime. It is derived from the installation's, so that it is
// not stored, and is not valid for any other tenant.
import { createHmac } from 'node:crypto'
import { isTenantId, type TenantId } from './ids.ts'
import { acceptedTokens, isInternalToken, type InternalToken } from './internal-token.ts'

/** Returns `<tenant id>.<HMAC-SHA256 of the tenant under the internal token, base64url>`. */
export function tenantToken(internalToken: string, tenantId: TenantId): string {
  return `${tenantId}.${createHmac('sha256', internalToken).update(`tenant:${tenantId}`).digest('base64url')}`
}

/** Checks a call's token in constant time. @returns the token's tenant; undefined for an invalid token */
export function tenantOfToken(internalToken: InternalToken, text: string): TenantId | undefined {
  const tenantId = text.slice(0, text.indexOf('.'))
  if (!isTenantId(tenantId)) return undefined
  const derived = acceptedTokens(internalToken).map((token) => tenantToken(token, tenantId))
  return isInternalToken({ sent: '', accepted: derived }, text) ? tenantId : undefined
}
