// Routes of /v1/console-sessions: sign in with a platform key, read and end the own session, list and revoke sessions.
import { SignInAttempts } from '@tenantry/contract'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Api } from '../http/api.ts'
import type { WriteDeps } from '../http/idempotency.ts'
import { NoQuery, PageQuery, pageRequest, writeContext } from '../http/parameters.ts'
import { authenticateKey, checkCallerAddress, type PlatformKey, type PlatformKeyStore } from '../keys/index.ts'
import { ControlError } from '../platform/errors.ts'
import { idleExpiry, maxSessionMilliseconds, type ConsoleSession } from './console-session.ts'
import { rejectOtherSite } from './session-access.ts'
import { csrfTokenOf, newSessionToken, sessionCookie, tokenOfCookie } from './session-token.ts'
import type { ConsoleSessionStore } from './store.ts'

const Time = Type.String({ description: 'ISO 8601, UTC' })
const SessionBody = Type.Object({
  id: Type.String(),
  platform_key_id: Type.String(),
  address: Type.String({ description: "The client's address at sign-in" }),
  user_agent: Type.String(),
  created_at: Time,
  seen_at: Time,
  expires_at: Type.String({ description: 'When it ends even if it is used; ISO 8601, UTC' }),
  idle_expires_at: Type.String({ description: 'When it ends without a further request; ISO 8601, UTC' }),
  revoked_at: Type.Union([Time, Type.Null()]),
})
const OwnSessionBody = Type.Object({
  ...SessionBody.properties,
  scope: Type.Enum(['admin', 'read', 'billing']),
  key_name: Type.String(),
  tenant_id: Type.Union([Type.String(), Type.Null()], { description: 'The only tenant that the session may use' }),
  region: Type.Union([Type.String(), Type.Null()], { description: 'The only region that the session may use' }),
  csrf_token: Type.String({ description: 'For the header `X-CSRF-Token` of writes with this session' }),
})
const tags = ['console sessions']
const allScopes = ['admin', 'read', 'billing'] as const
const maxUserAgentLength = 300

/** The dependencies of the routes of console sessions. */
export interface ConsoleSessionRoutesDeps extends WriteDeps {
  consoleSessions: ConsoleSessionStore
  keys: PlatformKeyStore
  /** Returns the current time. */
  now: () => Date
}

/** Adds the routes of console sessions: sign in, read and end the own one, list, revoke. */
export function addConsoleSessionRoutes(app: Api, deps: ConsoleSessionRoutesDeps): void {
  const attempts = new SignInAttempts(deps.now)

  app.post(
    '/v1/console-sessions',
    {
      config: { scopes: 'public' },
      schema: {
        summary: 'Sign in to the console with a platform key',
        description: 'The session is a cookie with the rights of the key. After failed attempts, an address must wait.',
        tags,
        querystring: NoQuery,
        security: [],
        body: Type.Object(
          { platform_key: Type.String({ minLength: 1, maxLength: 200 }) },
          { additionalProperties: false },
        ),
        response: { 201: OwnSessionBody },
      },
    },
    async (request, reply) => {
      rejectOtherSite(request)
      const address = request.ip
      const wait = attempts.waitSeconds(address)
      if (wait > 0) {
        void reply.header('retry-after', String(wait))
        throw new ControlError('TOO_MANY_ATTEMPTS', `Too many failed attempts to sign in. Try again in ${wait} s.`)
      }
      const key = await authenticateKey(request.body.platform_key.trim(), deps).catch((cause: unknown) => {
        if (cause instanceof ControlError && cause.status === 401) attempts.fail(address)
        throw cause
      })
      attempts.succeed(address)
      checkCallerAddress(key.addresses, address)
      const token = newSessionToken()
      const session = await deps.record({ keyId: key.id }, (write) =>
        deps.consoleSessions.create(
          {
            token,
            platformKeyId: key.id,
            keyExpiresAt: key.expiresAt,
            address,
            userAgent: (request.headers['user-agent'] ?? '').slice(0, maxUserAgentLength).toWellFormed(),
          },
          write,
        ),
      )
      void reply.header('set-cookie', sessionCookie(token, isHttps(request), maxSessionMilliseconds / 1000))
      return reply.status(201).send({ ...present(session), ...own(key, token) })
    },
  )

  app.get(
    '/v1/console-sessions/current',
    {
      config: { scopes: allScopes },
      schema: {
        summary: 'The session of the request, with its CSRF token',
        tags,
        querystring: NoQuery,
        response: { 200: OwnSessionBody },
      },
    },
    async (request) => {
      const { token, session, key } = await ownSession(deps, request)
      return { ...present(session), ...own(key, token) }
    },
  )

  app.delete(
    '/v1/console-sessions/current',
    {
      config: { scopes: allScopes },
      schema: { summary: 'Sign out', tags, querystring: NoQuery, response: { 204: Type.Null() } },
    },
    async (request, reply) => {
      const { session } = await ownSession(deps, request)
      await deps.record(writeContext(request).actor, (write) => deps.consoleSessions.revoke(session.id, write))
      void reply.header('set-cookie', sessionCookie('', isHttps(request), 0))
      return reply.status(204).send(null)
    },
  )

  app.get(
    '/v1/console-sessions',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'List console sessions, oldest first; those that ended up to a week ago, too',
        tags,
        querystring: Type.Object(PageQuery, { additionalProperties: false }),
        response: {
          200: Type.Object({
            console_sessions: Type.Array(SessionBody),
            next_cursor: Type.Union([Type.String(), Type.Null()]),
          }),
        },
      },
    },
    async (request) => {
      const page = await deps.consoleSessions.list(pageRequest(request.query))
      return { console_sessions: page.items.map(present), next_cursor: page.nextCursor ?? null }
    },
  )

  app.delete(
    '/v1/console-sessions/:id',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'End a console session at once',
        tags,
        params: Type.Object({ id: Type.String() }),
        querystring: NoQuery,
        response: { 200: SessionBody },
      },
    },
    async (request) =>
      present(
        await deps.record(writeContext(request).actor, (write) =>
          deps.consoleSessions.revoke(request.params.id, write),
        ),
      ),
  )
}

/**
 * Returns the session of a request with its token and key.
 * @throws ControlError CONSOLE_SESSION_NOT_FOUND for a request with a platform key
 */
async function ownSession(deps: ConsoleSessionRoutesDeps, request: FastifyRequest) {
  const token = request.consoleSession === undefined ? undefined : tokenOfCookie(request.headers.cookie)
  const session = token === undefined ? undefined : await deps.consoleSessions.find(token)
  const key = request.platformKey
  if (token === undefined || session === undefined || key === undefined)
    throw new ControlError('CONSOLE_SESSION_NOT_FOUND', 'The request has a platform key, not a console session.')
  return { token, session, key }
}

/** Whether the browser has sent the request by HTTPS, by the page's own origin. It only decides the cookie's attribute. */
function isHttps(request: FastifyRequest): boolean {
  return request.headers.origin?.startsWith('https://') ?? false
}

function own({ scope, name, limit }: Pick<PlatformKey, 'scope' | 'name' | 'limit'>, token: string) {
  return {
    scope,
    key_name: name,
    tenant_id: limit.tenantId ?? null,
    region: limit.region ?? null,
    csrf_token: csrfTokenOf(token),
  }
}

function present(session: ConsoleSession) {
  return {
    id: session.id,
    platform_key_id: session.platformKeyId,
    address: session.address,
    user_agent: session.userAgent,
    created_at: session.createdAt.toISOString(),
    seen_at: session.seenAt.toISOString(),
    expires_at: session.expiresAt.toISOString(),
    idle_expires_at: idleExpiry(session).toISOString(),
    revoked_at: session.revokedAt?.toISOString() ?? null,
  }
}
