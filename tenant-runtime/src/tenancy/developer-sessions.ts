// Authenticates requests with the session of a developer, in place of the secret key. A session counts only together with its
// CSRF token in a header, which no page of another origin can send.
import type { TenantManifest } from '@tenantry/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { RuntimeError } from '../errors.ts'
import {
  cookieName,
  csrfTokenOf,
  idleSessionMilliseconds,
  isCsrfToken,
  isValidSession,
  maxSessionMilliseconds,
  openSession,
  sealSession,
  sessionEnd,
  takeCookie,
  type DeveloperSession,
} from './developer-session.ts'
import type { RlsContext } from './rls-context.ts'
import type { Tenant } from './tenant.ts'

/** The header with the session's CSRF token. */
const csrfHeader = 'x-csrf-token'
/** The header of requests that the console sends by itself. Such a request does not keep a session from ending as idle. */
const backgroundHeader = 'x-console-background'
/** Precision of the last request's time. The cookie is sent again only if it is older. */
const seenMilliseconds = 60_000
/** Maximum number of sessions that were ended by a sign-out and are remembered. The oldest one is removed first. */
const maxEnded = 10_000

/** A session that a request has sent. */
export interface SentSession {
  session: DeveloperSession
  csrfToken: string
}

/** The context of requests with a session. */
export const sessionContext: RlsContext = { role: 'service', reason: 'console session' }

/** The sessions of developers, of all tenants of this runtime. */
export class DeveloperSessions {
  readonly #now: () => number
  /** IDs of sessions that a sign-out has ended, in the order of the sign-outs. */
  readonly #ended = new Set<string>()
  #onEnd: (session: string) => void = () => undefined

  /** @param now returns milliseconds since the epoch */
  constructor(now: () => number) {
    this.#now = now
  }

  /**
   * Takes the session out of the request's cookies, and returns the service's context if the request also has its CSRF token.
   * Extends the session.
   * @returns undefined for a request without a session, or with its cookie alone
   * @throws RuntimeError SESSION_ENDED, CSRF_REJECTED
   */
  authenticate(request: FastifyRequest, reply: FastifyReply, tenant: Tenant): RlsContext | undefined {
    const { headers } = request
    const value = takeCookie(headers, tenant.id)
    const session = value === undefined ? undefined : this.#open(value, tenant)
    if (session !== undefined) request.developerSession = { session, csrfToken: csrfTokenOf(session, tenant.manifest) }
    const isSent = headers[csrfHeader] !== undefined
    if (!isSent || headers.authorization !== undefined || headers['apikey'] !== undefined) return undefined
    if (session === undefined) throw sessionEnded()
    rejectOtherOrigin(request)
    if (!isCsrfToken(session, tenant.manifest, headers[csrfHeader]))
      throw new RuntimeError('CSRF_REJECTED', `The header "${csrfHeader}" does not have the session's "csrf_token".`)
    const now = this.#now()
    if (headers[backgroundHeader] === undefined && now - session.seen > seenMilliseconds)
      this.#send(request, reply, tenant, { ...session, seen: now })
    return sessionContext
  }

  /** @throws RuntimeError SESSION_ENDED if a session is no longer valid */
  requireValid({ session }: SentSession, tenant: Tenant): void {
    if (!this.#isValid(session, tenant.manifest)) throw sessionEnded()
  }

  /** Begins a session and sends its cookie. @param key the hash of the secret key */
  begin(request: FastifyRequest, reply: FastifyReply, key: string, id: string): SentSession {
    const { tenant } = request
    const now = this.#now()
    const session: DeveloperSession = { v: 1, tenant: tenant.id, id, key, begun: now, seen: now }
    this.#send(request, reply, tenant, session)
    return { session, csrfToken: csrfTokenOf(session, tenant.manifest) }
  }

  /** Sets the function that receives the ID of each session that a sign-out ends here. */
  whenEnded(listener: (session: string) => void): void {
    this.#onEnd = listener
  }

  /** Returns the IDs of the sessions that a sign-out has ended. */
  listEnded(): readonly string[] {
    return [...this.#ended]
  }

  /** Ends sessions of which another runtime has received the sign-out. */
  addEnded(sessions: readonly string[]): void {
    for (const session of sessions) this.#ended.add(session)
    for (const oldest of this.#ended) {
      if (this.#ended.size <= maxEnded) break
      this.#ended.delete(oldest)
    }
  }

  /** Ends a session, and removes its cookie. */
  end(request: FastifyRequest, reply: FastifyReply, { session }: SentSession): void {
    this.addEnded([session.id])
    this.#onEnd(session.id)
    void reply.header('set-cookie', cookieOf(request, request.tenant.id, '', 0))
  }

  #open(value: string, { manifest }: Tenant): DeveloperSession | undefined {
    const session = openSession(value, manifest)
    return session === undefined || !this.#isValid(session, manifest) ? undefined : session
  }

  #isValid(session: DeveloperSession, manifest: TenantManifest): boolean {
    return isValidSession(session, manifest, this.#now()) && !this.#ended.has(session.id)
  }

  #send(request: FastifyRequest, reply: FastifyReply, { id, manifest }: Tenant, session: DeveloperSession): void {
    const last = Math.ceil((session.begun + maxSessionMilliseconds - this.#now()) / 1000)
    const seconds = Math.min(last, idleSessionMilliseconds / 1000)
    void reply.header('set-cookie', cookieOf(request, id, sealSession(session, manifest), seconds))
  }
}

function sessionEnded(): RuntimeError {
  return new RuntimeError('SESSION_ENDED', 'The session has ended. Sign in again.')
}

/** Returns the response's body about a session. */
export function presentSession({ session, csrfToken }: SentSession, { id, name }: Tenant) {
  return {
    tenant_id: id,
    tenant_name: name,
    csrf_token: csrfToken,
    expires_at: new Date(session.begun + maxSessionMilliseconds).toISOString(),
    idle_expires_at: new Date(sessionEnd(session)).toISOString(),
  }
}

/**
 * Rejects a request that a browser sends for a page of another origin, also one of the same site.
 * @throws RuntimeError CSRF_REJECTED
 */
export function rejectOtherOrigin({ headers }: FastifyRequest): void {
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin')
    throw new RuntimeError('CSRF_REJECTED', 'The request comes from a page of another origin.')
}

/** Scripts cannot read the cookie, other sites cannot send it, and browsers send it to this tenant's path alone. */
function cookieOf({ basePath, headers }: FastifyRequest, tenantId: string, value: string, seconds: number): string {
  const secure = headers.origin?.startsWith('https://') === true ? '; Secure' : ''
  const limits = `Path=${basePath}/; HttpOnly; SameSite=Strict; Max-Age=${seconds}${secure}`
  return `${cookieName(tenantId)}=${value}; ${limits}`
}
