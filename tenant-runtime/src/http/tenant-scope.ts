// Before any handler: the call comes from our gateway, for a tenant we serve, from a caller who may call this route.
import { timingSafeEqual } from 'node:crypto'
import { basePathHeader, internalTokenHeader, rejectedHeader, tenantHeader } from '@tenantry/contract'
import type { FastifyInstance } from 'fastify'
import { RuntimeError } from '../errors.ts'
import { credentialsOf, type Authenticator } from '../tenancy/authenticate.ts'
import { anonymous, type RlsContext } from '../tenancy/rls-context.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import type { Access } from './request-scope.ts'

interface TenantScopeOptions {
  internalToken: string
  tenantOf: (tenantId: string) => Tenant | undefined
  authenticator: Authenticator
}

export function addTenantScope(
  app: FastifyInstance,
  { internalToken, tenantOf, authenticator }: TenantScopeOptions,
): void {
  // Fastify wants the members declared; the hook below sets them before any handler reads them.
  app.decorateRequest('tenant', null as never)
  app.decorateRequest('rls', null as never)
  app.decorateRequest('admitted', false)
  app.decorateRequest('basePath', '')
  app.addHook('onRoute', (route) => {
    if (route.config?.access === undefined)
      throw new Error(`${String(route.method)} ${route.url} does not say who may call it`)
  })
  app.addHook('onRequest', async (request) => {
    const access = request.routeOptions.config.access
    if (access === 'live') return
    checkToken(request.headers[internalTokenHeader], internalToken)
    if (access === 'internal') return
    const tenantId = request.headers[tenantHeader]
    const tenant = typeof tenantId === 'string' ? tenantOf(tenantId) : undefined
    if (tenant === undefined) throw new RuntimeError('TENANT_UNKNOWN', 'the tenant is not served here yet')
    request.tenant = tenant
    const basePath = request.headers[basePathHeader]
    request.basePath = typeof basePath === 'string' ? basePath : ''
    // A preflight carries no credentials; a signed URL needs none, and whatever came with it has no say.
    request.rls =
      request.method === 'OPTIONS' || access === 'signed'
        ? anonymous
        : await authenticator.authenticate(tenant, credentialsOf(request.headers))
    if (access === undefined) return
    // A caller who is known has valid credentials, whatever they are good for.
    request.admitted = access !== 'signed' && request.rls.role !== 'anon'
    checkAccess(access, request.rls)
    request.admitted = access !== 'signed'
  })
  app.addHook('onSend', async (request, reply) => {
    if (!request.admitted && reply.statusCode >= 400) reply.header(rejectedHeader, '1')
  })
}

function checkToken(given: string | string[] | undefined, wanted: string): void {
  const ok =
    typeof given === 'string' &&
    given.length === wanted.length &&
    timingSafeEqual(Buffer.from(given), Buffer.from(wanted))
  if (!ok) throw new RuntimeError('FORBIDDEN', 'this is not a public door')
}

function checkAccess(access: Access, context: RlsContext): void {
  if (access === 'authenticated' && context.role === 'anon') {
    throw new RuntimeError('UNAUTHORIZED', 'this needs a signed-in user: send "Authorization: Bearer <token>"')
  }
  if (access === 'service' && context.role === 'anon')
    throw new RuntimeError('UNAUTHORIZED', 'this needs the service role: send the secret key')
  if (access === 'service' && context.role === 'authenticated')
    throw new RuntimeError('FORBIDDEN', 'only the service role may do this')
}
