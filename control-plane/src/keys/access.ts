// Who may call which operation: every route declares the scopes that open it, and the start fails for one without.
import { timingSafeEqual } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { ControlError } from '../platform/errors.ts'
import { keyHash } from './key-text.ts'
import type { PlatformKey, PlatformKeyStore, Scope } from './platform-key-store.ts'
import { internalTokenHeader, tenantOfToken } from '@tenantry/contract'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * `public`: no key. `internal`: the installation's own token. `internal or tenant`: that, or the token of one tenant's
     * runtime. Else the scopes of keys that may call it.
     */
    scopes?: 'public' | 'internal' | 'internal or tenant' | readonly Scope[]
  }
  interface FastifyRequest {
    /** The caller's platform key; only on routes that want one. */
    platformKey: PlatformKey | undefined
    /** Whose token it came with; undefined: the installation's, which stands for all. */
    ofTenant: string | undefined
  }
}

interface AccessOptions {
  keys: PlatformKeyStore
  internalToken: string
  now: () => Date
  /** Paths of plugins whose routes are not ours to declare. */
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
      throw new Error(`${String(route.method)} ${route.url} does not say who may call it`)
  })
  app.addHook('onRequest', async (request) => {
    const access = request.routeOptions.config.scopes
    // No route: the not-found handler answers.
    if (access === undefined || access === 'public') return
    if (access === 'internal or tenant') {
      const given = request.headers[internalTokenHeader]
      request.ofTenant = typeof given === 'string' ? tenantOfToken(options.internalToken, given) : undefined
      if (request.ofTenant === undefined) checkInternalToken(given, options.internalToken)
      return
    }
    if (access === 'internal') {
      checkInternalToken(request.headers[internalTokenHeader], options.internalToken)
      return
    }
    request.platformKey = await authenticate(request.headers.authorization, options)
    if (!access.includes(request.platformKey.scope)) {
      throw new ControlError(
        'WRONG_SCOPE',
        `this needs a platform key of scope ${access.join(' or ')}; yours has ${request.platformKey.scope}`,
      )
    }
  })
}

async function authenticate(header: string | undefined, { keys, now }: AccessOptions): Promise<PlatformKey> {
  if (header === undefined)
    throw new ControlError('MISSING_KEY', 'the header "Authorization: Bearer <platform key>" is missing')
  const match = /^Bearer +(\S+)$/i.exec(header)
  const key = match?.[1] === undefined ? undefined : await keys.find(keyHash(match[1]))
  if (key === undefined) throw new ControlError('INVALID_KEY', 'the platform key is not known')
  if (key.revokedAt !== undefined) throw new ControlError('REVOKED_KEY', 'the platform key was revoked')
  if (key.expiresAt !== undefined && key.expiresAt <= now())
    throw new ControlError('REVOKED_KEY', 'the platform key has expired')
  return key
}

function checkInternalToken(given: string | string[] | undefined, wanted: string): void {
  const ok =
    typeof given === 'string' &&
    given.length === wanted.length &&
    timingSafeEqual(Buffer.from(given), Buffer.from(wanted))
  // A wrong token must look like a path that isn't there: these routes are nobody else's business.
  if (!ok) throw new ControlError('NOT_FOUND', 'there is nothing here')
}
