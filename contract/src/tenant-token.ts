// The token between the installation and one tenant's own runtime. It is derived from the installation's, so that it is
// not stored, and is not valid for any other tenant.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { isTenantId, type TenantId } from './ids.ts'

/** Returns `<tenant id>.<HMAC-SHA256 of the tenant under the internal token, base64url>`. */
export function tenantToken(internalToken: string, tenantId: TenantId): string {
  return `${tenantId}.${createHmac('sha256', internalToken).update(`tenant:${tenantId}`).digest('base64url')}`
}

/** Checks a call's token in constant time. @returns the token's tenant; undefined for an invalid token */
export function tenantOfToken(internalToken: string, text: string): TenantId | undefined {
  const tenantId = text.slice(0, text.indexOf('.'))
  if (!isTenantId(tenantId)) return undefined
  const expected = Buffer.from(tenantToken(internalToken, tenantId))
  const received = Buffer.from(text)
  return received.length === expected.length && timingSafeEqual(received, expected) ? tenantId : undefined
}
