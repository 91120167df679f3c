// GET /v1/tenants/{id}/health (specification, section 4.4), GET /health of the control plane itself, and liveness for
// the supervisor.
import { internalPaths } from '@tenantry/contract'
import { Type } from 'typebox'
import type { Api } from '../http/api.ts'
import { NoQuery } from '../http/parameters.ts'
import { foundTenant, type TenantStore } from '../tenants/index.ts'
import { Health } from './health.ts'
import type { HealthReader } from './read-health.ts'

const Body = Type.Object({ status: Type.Enum(['healthy', 'unhealthy']), observed_at: Type.String() })

/** The dependencies of the routes of health. */
export interface HealthRoutesDeps {
  tenants: Pick<TenantStore, 'get'>
  health: HealthReader
  /** Returns whether the control database responds. */
  ping(): Promise<boolean>
  /** Returns the current time. */
  now: () => Date
}

/** Adds the routes of health: the control plane's own and a tenant's (specification, section 4.4). */
export function addHealthRoutes(app: Api, deps: HealthRoutesDeps): void {
  app.get(
    '/health',
    {
      config: { scopes: 'public' },
      schema: { summary: 'Health of the control plane', tags: ['health'], response: { 200: Body, 503: Body } },
    },
    async (_request, reply) => {
      const healthy = await deps.ping()
      const body = {
        status: healthy ? ('healthy' as const) : ('unhealthy' as const),
        observed_at: deps.now().toISOString(),
      }
      return reply.status(healthy ? 200 : 503).send(body)
    },
  )
  app.get(internalPaths.live, { config: { scopes: 'public' }, schema: { hide: true } }, () => ({ status: 'live' }))

  app.get(
    '/v1/tenants/:id/health',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: "A tenant's health, as its runtime and its engine report it at present",
        tags: ['tenants'],
        querystring: NoQuery,
        params: Type.Object({ id: Type.String() }),
        response: { 200: Health },
      },
    },
    async (request) => deps.health.read(await foundTenant(deps, request.params.id)),
  )
}
