// Runs before any handler: checks that the call comes from our gateway, for a tenant of this runtime, and from a caller
// that may call the route.
import {
  basePathHeader,
  internalTokenHeader,
  isInternalToken,
  isMetricsToken,
  RequestTurns,
  rejectedHeader,
  tenantHeader,
  type InternalToken,
} from '@tenantry/contract'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { RuntimeError } from '../errors.ts'
import { credentialsOf, type Authenticator } from '../tenancy/authenticate.ts'
import { anonymous, type RlsContext } from '../tenancy/rls-context.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import type { Access } from './request-scope.ts'

interface TenantScopeOptions {
  internalToken: InternalToken
  tenantOf: (tenantId: string) => Tenant | undefined
  authenticator: Authenticator
}

export function addTenantScope(
  app: FastifyInstance,
  { internalToken, tenantOf, authenticator }: TenantScopeOptions,
): void {
  const turns = new RequestTurns()
  // Fastify requires declared members. The hook below sets them before any handler reads them.
  app.decorateRequest('tenant', null as never)
  app.decorateRequest('rls', null as never)
  app.decorateRequest('admitted', false)
  app.decorateRequest('basePath', '')
  app.decorateRequest('developerSession', null)
  app.addHook('onRoute', (route) => {
    if (route.config?.access === undefined)
      throw new Error(`${String(route.method)} ${route.url} does not declare who may call it.`)
  })
  app.addHook('onRequest', async (request, reply) => {
    const access = request.routeOptions.config.access
    if (access === 'live') return
    const { authorization, [internalTokenHeader]: token } = request.headers
    if (access === 'metrics' && isMetricsToken(internalToken, token, authorization)) return
    if (!isInternalToken(internalToken, token)) throw new RuntimeError('FORBIDDEN', 'This address is not public.')
    if (access === 'internal') return
    const tenantId = request.headers[tenantHeader]
    const tenant = typeof tenantId === 'string' ? tenantOf(tenantId) : undefined
    if (tenant === undefined) throw new RuntimeError('TENANT_UNKNOWN', 'This runtime does not serve the tenant yet.')
    request.tenant = tenant
    if (!turns.begins(tenant.id)) await awaitTurn(turns, request)
    const basePath = request.headers[basePathHeader]
    request.basePath = typeof basePath === 'string' ? basePath : ''
    const session = authenticator.sessions.authenticate(request, reply, tenant)
    // A preflight has no credentials. A signed URL needs none, and any others are ignored.
    request.rls =
      request.method === 'OPTIONS' || access === 'signed'
        ? anonymous
        : (session ?? (await authenticator.authenticate(tenant, credentialsOf(request.headers))))
    if (access === undefined) return
    // An identified caller has valid credentials, even if they are not sufficient for this route.
    request.admitted = access !== 'signed' && request.rls.role !== 'anon'
    checkAccess(access, request.rls)
    request.admitted = access !== 'signed'
  })
  app.addHook('onSend', async (request, reply) => {
    if (!request.admitted && reply.statusCode >= 400) reply.header(rejectedHeader, '1')
  })
}

/** Waits until it is the request's turn. One whose sender has left uses none. */
function awaitTurn(turns: RequestTurns, { tenant, raw }: FastifyRequest): Promise<void> {
  return new Promise((resolve) =>
    turns.wait(tenant.id, () => {
      resolve()
      return !raw.destroyed
    }),
  )
}

function checkAccess(access: Access, context: RlsContext): void {
  if (access === 'authenticated' && context.role === 'anon') {
    throw new RuntimeError(
      'UNAUTHORIZED',
      'This request requires a signed-in user. Send "Authorization: Bearer <token>".',
    )
  }
  if (access === 'service' && context.role === 'anon')
    throw new RuntimeError('UNAUTHORIZED', 'This request requires the service role. Send the secret key.')
  if (access === 'service' && context.role === 'authenticated')
    throw new RuntimeError('FORBIDDEN', 'Only the service role may do this.')
}
