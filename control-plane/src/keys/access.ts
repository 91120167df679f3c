// Authorizes callers. Every route declares the scopes that may call it, and the start fails for a route without a
// declaration.
import type { FastifyInstance } from 'fastify'
import { ControlError } from '../platform/errors.ts'
import { keyHash } from './key-text.ts'
import type { PlatformKey, Scope } from './platform-key.ts'
import { internalTokenHeader, isInternalToken, tenantOfToken, type InternalToken } from '@tenantry/contract'
import type { PlatformKeyStore } from './store.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The scopes of the platform keys that may call the route. `public`: no key. `internal`: the installation's own
     * token. `internal or tenant`: the internal token, or the token of one tenant's runtime.
     */
    scopes?: 'public' | 'internal' | 'internal or tenant' | readonly Scope[]
  }
  interface FastifyRequest {
    /** The caller's platform key; only on routes that require one. */
    platformKey: PlatformKey | undefined
    /** The tenant of the caller's token; undefined for the installation's token, which is valid for all tenants. */
    ofTenant: string | undefined
  }
}

interface AccessOptions {
  keys: PlatformKeyStore
  internalToken: InternalToken
  now: () => Date
  /** The path prefix of plugins, whose routes are declared elsewhere. */
  publicPrefix: string
}

/** Adds the hook that checks, before every route, whether the caller may use it (specification, section 5). */
export function addAccess(app: FastifyInstance, options: AccessOptions): void {
  app.decorateRequest('platformKey', undefined)
  app.decorateRequest('ofTenant', undefined)
  app.addHook('onRoute', (route) => {
    if (route.url === options.publicPrefix || route.url.startsWith(`${options.publicPrefix}/`))
      route.config = { ...route.config, scopes: 'public' }
    if (route.config?.scopes === undefined)
      throw new Error(`The route ${String(route.method)} ${route.url} declares no scopes.`)
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
    request.platformKey = await authenticate(request.headers.authorization, options)
    if (!access.includes(request.platformKey.scope)) {
      throw new ControlError(
        'WRONG_SCOPE',
        `This call needs a platform key with the scope ${access.join(' or ')}. This key has the scope ${request.platformKey.scope}.`,
      )
    }
  })
}

async function authenticate(header: string | undefined, { keys, now }: AccessOptions): Promise<PlatformKey> {
  if (header === undefined)
    throw new ControlError('MISSING_KEY', 'The header "Authorization: Bearer <platform key>" is missing.')
  const match = /^Bearer +(\S+)$/i.exec(header)
  const key = match?.[1] === undefined ? undefined : await keys.find(keyHash(match[1]))
  if (key === undefined) throw new ControlError('INVALID_KEY', 'The platform key is unknown.')
  if (key.revokedAt !== undefined) throw new ControlError('REVOKED_KEY', 'The platform key was revoked.')
  if (key.expiresAt !== undefined && key.expiresAt <= now())
    throw new ControlError('REVOKED_KEY', 'The platform key has expired.')
  return key
}

function checkInternalToken(given: unknown, { internalToken }: AccessOptions): void {
  // The response to a wrong token is the same as for an unknown path, so that it does not reveal the internal routes.
  if (!isInternalToken(internalToken, given)) throw new ControlError('NOT_FOUND', 'There is nothing at this address.')
}
