// The token between the installation and one tenant's own runtime: derived from the installation's, so that nobody has
// to keep it, and worth nothing for any other tenant.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { isTenantId, type TenantId } from './ids.ts'

/** `<tenant id>.<HMAC-SHA256 of the tenant under the internal token, base64url>`. */
export function tenantToken(internalToken: string, tenantId: TenantId): string {
  return `${tenantId}.${createHmac('sha256', internalToken).update(`tenant:${tenantId}`).digest('base64url')}`
}

/** Checks a token that came with a call. @returns whose token the text is, compared in constant time; undefined when it is nobody's */
export function tenantOfToken(internalToken: string, text: string): TenantId | undefined {
  const tenantId = text.slice(0, text.indexOf('.'))
  if (!isTenantId(tenantId)) return undefined
  const expected = Buffer.from(tenantToken(internalToken, tenantId))
  const given = Buffer.from(text)
  return given.length === expected.length && timingSafeEqual(given, expected) ? tenantId : undefined
}
