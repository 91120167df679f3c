// Authorizes callers. Every route declares the scopes that may call it, `limited-access.ts` states what limited keys may
// do with it, and the start fails for a route without both.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ControlError } from '../platform/errors.ts'
import { checkLimit, checkLimitOfBody, limitOf } from './check-limit.ts'
import { checkCallerAddress } from './key-rights.ts'
import { keyHash } from './key-text.ts'
import { limitedAccessOf, type LimitedAccess } from './limited-access.ts'
import type { PlatformKey, Scope } from './platform-key.ts'
import { internalTokenHeader, isInternalToken, tenantOfToken, type InternalToken } from '@tenantry/contract'
import type { PlatformKeyStore } from './store.ts'
import type { KeySubjects } from './store-subjects.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The scopes of the platform keys that may call the route. `public`: no key. `internal`: the installation's own
     * token. `internal or tenant`: the internal token, or the token of one tenant's runtime.
     */
    scopes?: 'public' | 'internal' | 'internal or tenant' | readonly Scope[]
    /** The access of limited keys to the route. Only routes for platform keys have it. */
    limitedAccess?: LimitedAccess
    /** False for a route that the console calls by itself: such a request does not keep a session from ending as idle. */
    extendsSession?: boolean
  }
  interface FastifyRequest {
    /** The caller's platform key; only on routes that require one. */
    platformKey: PlatformKey | undefined
    /** The ID of the console session in place of a key in the request; then `platformKey` is the session's. */
    consoleSession: string | undefined
    /** The tenant of the caller's token; undefined for the installation's token, which is valid for all tenants. */
    ofTenant: string | undefined
    /**
     * Checks again whether the caller may use the route, for a response that continues; only on routes that require a
     * platform key. @throws ControlError as at the start of the request
     */
    checkAccess(): Promise<void>
  }
}

/** Authorizes requests by the session of the web console. */
export interface SessionAccess {
  /**
   * Returns the session of a request and its platform key; undefined for a request without a session.
   * @throws ControlError SESSION_ENDED, REVOKED_KEY, and CSRF_REJECTED for a write that another site may have caused
   */
  authenticate(request: FastifyRequest): Promise<{ key: PlatformKey; sessionId: string } | undefined>
}

interface AccessOptions {
  keys: PlatformKeyStore
  subjects: KeySubjects
  sessions: SessionAccess
  internalToken: InternalToken
  now: () => Date
  /** The path prefix of plugins, whose routes are declared elsewhere. */
  publicPrefix: string
}

/** Adds the hook that checks, before every route, whether the caller may use it (specification, section 5). */
export function addAccess(app: FastifyInstance, options: AccessOptions): void {
  app.decorateRequest('platformKey', undefined)
  app.decorateRequest('consoleSession', undefined)
  app.decorateRequest('ofTenant', undefined)
  app.decorateRequest('checkAccess', function () {
    return requireAccess(this, options)
  })
  app.addHook('onRoute', (route) => {
    if (route.url === options.publicPrefix || route.url.startsWith(`${options.publicPrefix}/`))
      route.config = { ...route.config, scopes: 'public' }
    if (route.config?.scopes === undefined)
      throw new Error(`The route ${String(route.method)} ${route.url} declares no scopes.`)
    if (typeof route.config.scopes === 'string') return
    const limited = [route.method].flat().map((method) => limitedAccessOf(method, route.url))
    const [access] = limited
    if (access === undefined || limited.some((one) => one !== access))
      throw new Error(`The route ${String(route.method)} ${route.url} is not in the table of limited keys.`)
    route.config = { ...route.config, limitedAccess: access }
  })
  app.addHook('onRequest', async (request) => {
    const access = request.routeOptions.config.scopes
    // Without a route, the not-found handler responds.
    if (access === undefined || access === 'public') return
    if (access === 'internal or tenant') {
      const given = request.headers[internalTokenHeader]
      request.ofTenant = typeof given === 'string' ? tenantOfToken(options.internalToken, given) : undefined
      if (request.ofTenant === undefined) checkInternalToken(given, options)
      return
    }
    if (access === 'internal') {
      checkInternalToken(request.headers[internalTokenHeader], options)
      return
    }
    await request.checkAccess()
  })
  app.addHook('preHandler', async (request) => {
    const { limitedAccess } = request.routeOptions.config
    if (limitedAccess !== undefined) checkLimitOfBody(limitOf(request), limitedAccess, request.body)
  })
}

/** Finds the caller's platform key and checks its address, scope and limit. @throws ControlError */
async function requireAccess(request: FastifyRequest, options: AccessOptions): Promise<void> {
  const { scopes, limitedAccess } = request.routeOptions.config
  const key = await authenticate(request, options)
  request.platformKey = key
  checkCallerAddress(key.addresses, request.ip)
  if (Array.isArray(scopes) && !scopes.includes(key.scope)) {
    throw new ControlError(
      'WRONG_SCOPE',
      `This call needs a platform key with the scope ${scopes.join(' or ')}. This key has the scope ${key.scope}.`,
    )
  }
  if (limitedAccess !== undefined)
    await checkLimit(limitOf(request), limitedAccess, idInPath(request.params), options.subjects)
}

function idInPath(params: unknown): string {
  return typeof params === 'object' && params !== null && 'id' in params ? String(params.id) : ''
}

/** Returns the key of the request's header or, without a header, of its session. */
async function authenticate(request: FastifyRequest, options: AccessOptions): Promise<PlatformKey> {
  const header = request.headers.authorization
  if (header !== undefined) return authenticateKey(/^Bearer +(\S+)$/i.exec(header)?.[1], options)
  const session = await options.sessions.authenticate(request)
  if (session === undefined)
    throw new ControlError('MISSING_KEY', 'The header "Authorization: Bearer <platform key>" is missing.')
  request.consoleSession = session.sessionId
  return session.key
}

/**
 * Finds a platform key by its text.
 * @throws ControlError INVALID_KEY, REVOKED_KEY
 */
export async function authenticateKey(
  text: string | undefined,
  { keys, now }: Pick<AccessOptions, 'keys' | 'now'>,
): Promise<PlatformKey> {
  const key = text === undefined ? undefined : await keys.find(keyHash(text))
  if (key === undefined) throw new ControlError('INVALID_KEY', 'The platform key is unknown.')
  requireValid(key, now())
  return key
}

/** Checks that a key can be used now. @throws ControlError REVOKED_KEY */
export function requireValid({ revokedAt, expiresAt }: PlatformKey, now: Date): void {
  if (revokedAt !== undefined) throw new ControlError('REVOKED_KEY', 'The platform key was revoked.')
  if (expiresAt !== undefined && expiresAt <= now)
    throw new ControlError('REVOKED_KEY', 'The platform key has expired.')
}

function checkInternalToken(given: unknown, { internalToken }: AccessOptions): void {
  // The response to a wrong token is the same as for an unknown path, so that it does not reveal the internal routes.
  if (!isInternalToken(internalToken, given)) throw new ControlError('NOT_FOUND', 'There is nothing at this address.')
}
