// The texts of a console session: its token, which is only in a cookie, and the CSRF token that follows from it.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { consoleCookie } from '@tenantry/contract'

/** The header that a write with a session must carry. A page of another origin can neither read its value nor send it. */
export const csrfHeader = 'x-csrf-token'
/** The header of requests that the console sends by itself, because something has changed. */
export const backgroundHeader = 'x-console-background'

/** Creates a random token of 256 bits in base64url. */
export function newSessionToken(): string {
  return randomBytes(32).toString('base64url')
}

/** Returns the SHA-256 of a token, which is stored in its place. */
export function tokenHash(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

/** Returns the CSRF token of a session. It does not reveal the session's token. */
export function csrfTokenOf(token: string): string {
  return createHash('sha256').update(`tenantry-csrf:${token}`).digest('base64url')
}

/** Whether the header has the session's CSRF token. */
export function isCsrfToken(token: string, given: unknown): boolean {
  if (typeof given !== 'string') return false
  const [expected, received] = [Buffer.from(csrfTokenOf(token)), Buffer.from(given)]
  return expected.length === received.length && timingSafeEqual(expected, received)
}

/** Reads the session's token from the header `Cookie`; undefined without one. */
export function tokenOfCookie(header: string | undefined): string | undefined {
  for (const part of (header ?? '').split(';')) {
    const [name, value] = part.trim().split('=', 2)
    if (name === consoleCookie && value !== undefined && /^[\w-]{43}$/.test(value)) return value
  }
  return undefined
}

/**
 * Returns the header `Set-Cookie` of a session. Scripts cannot read the cookie, and other sites cannot send it.
 * @param isSecure whether the browser uses HTTPS, so that it never sends the cookie without
 */
export function sessionCookie(token: string, isSecure: boolean, maxAgeSeconds: number): string {
  const secure = isSecure ? '; Secure' : ''
  return `${consoleCookie}=${token}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeSeconds}${secure}`
}
