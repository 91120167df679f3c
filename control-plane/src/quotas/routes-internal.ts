// The route at which gateways lease tenants' monthly requests.
import { LeaseCall, internalPaths } from '@tenantry/contract'
import type { FastifyPluginAsync } from 'fastify'
import type { RequestLeases } from './request-leases.ts'

const bodyLimit = 1024 * 1024

/** Creates a plugin with the internal route at which gateways lease requests and connections. */
export function leaseRoutes(leases: RequestLeases): FastifyPluginAsync {
  return async (app) => {
    app.post<{ Body: LeaseCall }>(
      internalPaths.leases,
      { config: { scopes: 'internal' }, schema: { hide: true, body: LeaseCall }, bodyLimit },
      (request) => leases.call(request.body),
    )
  }
}
