// GET /v1/tenants/{id}/drift (specification, section 4.4).
import { Type } from 'typebox'
import type { Api } from '../http/api.ts'
import { NoQuery } from '../http/parameters.ts'
import { foundTenant, driftPolicies, type TenantStore } from '../tenants/index.ts'
import type { DriftReader } from './read-drift.ts'

const DriftValue = Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()])

const DriftBody = Type.Object({
  tenant_id: Type.String(),
  policy: Type.Enum([...driftPolicies]),
  observed_at: Type.String(),
  drifted: Type.Boolean(),
  differences: Type.Array(
    Type.Object({ component: Type.String(), field: Type.String(), desired: DriftValue, observed: DriftValue }),
  ),
})

/** The dependencies of the route of drift. */
export interface DriftRoutesDeps {
  tenants: Pick<TenantStore, 'get'>
  drift: DriftReader
}

/** Adds the route that returns the differences between what exists of a tenant and what should exist. */
export function addDriftRoutes(app: Api, deps: DriftRoutesDeps): void {
  app.get(
    '/v1/tenants/:id/drift',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'The differences between what exists of a tenant and what should exist',
        tags: ['tenants'],
        querystring: NoQuery,
        params: Type.Object({ id: Type.String() }),
        response: { 200: DriftBody },
      },
    },
    async (request) => deps.drift.read(await foundTenant(deps, request.params.id)),
  )
}
