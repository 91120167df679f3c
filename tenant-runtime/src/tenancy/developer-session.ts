// Sessions of the developers' console: a cookie that the tenant's signing secret seals. Nothing is stored, so every runtime of
// the tenant accepts it. It contains no part of the secret key, but the hash of it, with which the session ends.
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { TenantManifest } from '@tenantry/contract'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'

const Session = Type.Object(
  {
    v: Type.Literal(1),
    tenant: Type.String(),
    /** Random text that no other session has. */
    id: Type.String(),
    /** Lower-case hex SHA-256 of the secret key. */
    key: Type.String(),
    /** Unix milliseconds of the sign-in, and of the last request with the session, exact to a minute. */
    begun: Type.Integer(),
    seen: Type.Integer(),
  },
  { additionalProperties: false },
)

/** A session of a developer, who has the rights of the service role. */
export type DeveloperSession = Static<typeof Session>

/** Milliseconds after the sign-in at which a session ends. */
export const maxSessionMilliseconds = 12 * 3_600_000
/** Milliseconds without a request after which a session ends. */
export const idleSessionMilliseconds = 2 * 3_600_000

const cookiePrefix = 'tenantry_developer_'

/** Returns the name of the tenant's cookie. No other tenant of the host has a cookie of this name. */
export function cookieName(tenantId: string): string {
  return `${cookiePrefix}${tenantId}`
}

/** Returns the value of the session's cookie. */
export function sealSession(session: DeveloperSession, manifest: TenantManifest): string {
  const payload = Buffer.from(JSON.stringify(session)).toString('base64url')
  return `${payload}.${seal(manifest, 'session', payload)}`
}

/** Returns the session of a cookie's value, which may have ended; undefined if it was not sealed for this tenant. */
export function openSession(value: string, manifest: TenantManifest): DeveloperSession | undefined {
  const [payload = '', given = ''] = value.split('.', 2)
  if (!isSame(seal(manifest, 'session', payload), given)) return undefined
  const session: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'))
  if (!Value.Check(Session, session) || session.tenant !== manifest.tenant_id) return undefined
  return session
}

/** Whether a session has neither expired nor ended with its key. */
export function isValidSession(session: DeveloperSession, manifest: TenantManifest, now: number): boolean {
  return now < sessionEnd(session) && hasKey(manifest, session, now)
}

/** Returns the time in Unix milliseconds at which a session ends if it makes no further request. */
export function sessionEnd({ begun, seen }: DeveloperSession): number {
  return Math.min(begun + maxSessionMilliseconds, seen + idleSessionMilliseconds)
}

/** Returns the text that a page of the console must send with its session. It does not reveal the session's cookie. */
export function csrfTokenOf({ id }: DeveloperSession, manifest: TenantManifest): string {
  return seal(manifest, 'csrf', id)
}

/** Whether a header has the session's CSRF token. */
export function isCsrfToken(session: DeveloperSession, manifest: TenantManifest, given: unknown): boolean {
  return typeof given === 'string' && isSame(csrfTokenOf(session, manifest), given)
}

/**
 * Removes the sessions of all tenants from the request's cookies, because neither functions nor SQL may see them, and returns
 * the value of this tenant's.
 */
export function takeCookie(headers: IncomingHttpHeaders, tenantId: string): string | undefined {
  const { cookie } = headers
  if (cookie?.includes(cookiePrefix) !== true) return undefined
  let found: string | undefined
  const others = cookie.split(';').filter((pair) => {
    const at = pair.indexOf('=')
    const name = (at < 0 ? pair : pair.slice(0, at)).trim()
    if (name === cookieName(tenantId)) found ??= pair.slice(at + 1).trim()
    return !name.startsWith(cookiePrefix)
  })
  if (others.length === 0) delete headers.cookie
  else headers.cookie = others.join(';').trim()
  return found
}

/** Whether the secret key with which the session began is still valid. */
function hasKey({ keys }: TenantManifest, { key }: DeveloperSession, now: number): boolean {
  return keys.some(
    ({ kind, sha256, expires_at: expiresAt }) =>
      kind === 'secret' && sha256 === key && (expiresAt === undefined || Date.parse(expiresAt) > now),
  )
}

function seal({ signing_secret: secret }: TenantManifest, purpose: 'session' | 'csrf', text: string): string {
  return createHmac('sha256', secret).update(`developer-${purpose}:${text}`).digest('base64url')
}

function isSame(expected: string, given: string): boolean {
  const [one, other] = [Buffer.from(expected), Buffer.from(given)]
  return one.length === other.length && timingSafeEqual(one, other)
}
