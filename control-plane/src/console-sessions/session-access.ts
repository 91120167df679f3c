// Authorizes requests with the cookie of a console session, in place of a platform key.
import type { FastifyRequest } from 'fastify'
import type { PlatformKeyStore, SessionAccess } from '../keys/index.ts'
import { checkCallerAddress, requireValid } from '../keys/index.ts'
import { ControlError } from '../platform/errors.ts'
import { isLive } from './console-session.ts'
import { backgroundHeader, csrfHeader, isCsrfToken, tokenOfCookie } from './session-token.ts'
import type { ConsoleSessionStore } from './store.ts'

interface SessionAccessDeps {
  sessions: Pick<ConsoleSessionStore, 'find' | 'seen'>
  keys: Pick<PlatformKeyStore, 'get'>
  now: () => Date
}

const readMethods = ['GET', 'HEAD']

/** Creates the check of console sessions. A session ends with its platform key. */
export function createSessionAccess({ sessions, keys, now }: SessionAccessDeps): SessionAccess {
  return {
    async authenticate(request) {
      const token = tokenOfCookie(request.headers.cookie)
      if (token === undefined) return undefined
      const session = await sessions.find(token)
      if (session === undefined || !isLive(session, now()))
        throw new ControlError('SESSION_ENDED', 'The session has ended. Sign in again.')
      rejectForeign(request, token)
      const key = await keys.get(session.platformKeyId)
      if (key === undefined) throw new ControlError('SESSION_ENDED', 'The session has ended. Sign in again.')
      requireValid(key, now())
      checkCallerAddress(key.addresses, request.ip)
      if (!isBackground(request)) await sessions.seen(session)
      return { key, sessionId: session.id }
    },
  }
}

/**
 * Whether the console sends the request by itself. Such requests do not keep a session from ending as idle. A browser opens
 * an event stream again by itself.
 */
function isBackground({ routeOptions, headers }: FastifyRequest): boolean {
  return (
    routeOptions.config.extendsSession === false ||
    headers[backgroundHeader] !== undefined ||
    headers.accept === 'text/event-stream'
  )
}

/**
 * Rejects a write that another site may have caused.
 * @throws ControlError CSRF_REJECTED
 */
function rejectForeign(request: FastifyRequest, token: string): void {
  if (readMethods.includes(request.method)) return
  rejectOtherSite(request)
  if (!isCsrfToken(token, request.headers[csrfHeader]))
    throw new ControlError(
      'CSRF_REJECTED',
      `A write with a session needs the session's "csrf_token" in the header "${csrfHeader}".`,
    )
}

/**
 * Rejects a request that a browser sends for a page of another origin.
 * @throws ControlError CSRF_REJECTED
 */
export function rejectOtherSite(request: FastifyRequest): void {
  const site = request.headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin')
    throw new ControlError('CSRF_REJECTED', 'The request comes from a page of another origin.')
}
