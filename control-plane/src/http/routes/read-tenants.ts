// GET /v1/tenants, GET /v1/tenants/{id}, and what is seen of one: health and drift (specification, section 4.4).
import { Type } from 'typebox'
import { Health } from '../../health/health-reader.ts'
import { driftPolicies, type Tenant } from '../../tenants/tenant.ts'
import type { Api } from '../api.ts'
import type { ApiDeps } from '../deps.ts'
import { foundTenant, regionOf } from '../lookup.ts'
import { PageQuery, pageRequest, textPattern } from '../parameters.ts'
import { etagOf, shownStatuses, TenantBody, toTenantBody } from '../tenant-body.ts'

const ListQuery = Type.Object(
  {
    ...PageQuery,
    plan: Type.Optional(Type.String({ pattern: textPattern })),
    region: Type.Optional(Type.String({ pattern: textPattern })),
    status: Type.Optional(Type.Enum([...shownStatuses])),
    name_prefix: Type.Optional(Type.String({ maxLength: 63, pattern: textPattern })),
  },
  { additionalProperties: false },
)

const DriftValue = Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()])

const DriftBody = Type.Object({
  tenant_id: Type.String(),
  policy: Type.Enum([...driftPolicies]),
  observed_at: Type.String(),
  drifted: Type.Boolean(),
  differences: Type.Array(Type.Object({ component: Type.String(), field: Type.String(), desired: DriftValue, observed: DriftValue })),
})

export const NoQuery = Type.Object({}, { additionalProperties: false })

export function addReadTenants(app: Api, deps: ApiDeps): void {
  const present = (tenant: Tenant) => toTenantBody(tenant, regionOf(deps, tenant))

  app.get(
    '/v1/tenants',
    {
      config: { scopes: ['admin', 'read', 'billing'] },
      schema: {
        summary: 'List tenants, oldest first',
        tags: ['tenants'],
        querystring: ListQuery,
        response: { 200: Type.Object({ tenants: Type.Array(TenantBody), next_cursor: Type.Union([Type.String(), Type.Null()]) }) },
      },
    },
    async (request) => {
      const { plan, region, status, name_prefix: namePrefix } = request.query
      const filter = {
        ...(plan === undefined ? {} : { plan }),
        ...(region === undefined ? {} : { region }),
        ...(status === undefined ? {} : { status }),
        ...(namePrefix === undefined ? {} : { namePrefix }),
      }
      const page = await deps.tenants.list(filter, pageRequest(request.query))
      return { tenants: page.items.map(present), next_cursor: page.nextCursor ?? null }
    },
  )

  app.get(
    '/v1/tenants/:id',
    {
      config: { scopes: ['admin', 'read', 'billing'] },
      schema: { summary: 'One tenant', tags: ['tenants'], querystring: NoQuery, params: Type.Object({ id: Type.String() }), response: { 200: TenantBody } },
    },
    async (request, reply) => {
      const tenant = await foundTenant(deps, request.params.id)
      return reply.header('etag', etagOf(tenant)).send(present(tenant))
    },
  )

  app.get(
    '/v1/tenants/:id/health',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: "A tenant's health, as its runtime and its engine see it now",
        tags: ['tenants'],
        querystring: NoQuery,
        params: Type.Object({ id: Type.String() }),
        response: { 200: Health },
      },
    },
    async (request) => deps.health.read(await foundTenant(deps, request.params.id)),
  )

  app.get(
    '/v1/tenants/:id/drift',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'How what exists of a tenant differs from what should',
        tags: ['tenants'],
        querystring: NoQuery,
        params: Type.Object({ id: Type.String() }),
        response: { 200: DriftBody },
      },
    },
    async (request) => deps.drift.read(await foundTenant(deps, request.params.id)),
  )
}
