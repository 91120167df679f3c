// GET /v1/tenants and GET /v1/tenants/{id}.
import { Type } from 'typebox'
import type { Tenant } from './tenant.ts'
import type { Api } from '../http/api.ts'
import { limitOf } from '../keys/index.ts'
import type { RegionConfig } from '../regions/index.ts'
import type { TenantStore } from './store.ts'
import { foundTenant, regionOf } from './lookup.ts'
import { PageQuery, pageRequest, textPattern, NoQuery } from '../http/parameters.ts'
import { etagOf, shownStatuses, TenantBody, toTenantBody } from './tenant-body.ts'

const ListQuery = Type.Object(
  {
    ...PageQuery,
    plan: Type.Optional(Type.String({ pattern: textPattern })),
    region: Type.Optional(Type.String({ pattern: textPattern })),
    status: Type.Optional(Type.Enum([...shownStatuses])),
    name_prefix: Type.Optional(Type.String({ maxLength: 63, pattern: textPattern })),
    search: Type.Optional(
      Type.String({ minLength: 1, maxLength: 63, pattern: textPattern, description: 'A part of the name, or the ID' }),
    ),
  },
  { additionalProperties: false },
)

/** Dependencies of the routes that read tenants. */
export interface ReadTenantsDeps {
  tenants: TenantStore
  regions: readonly RegionConfig[]
}

/** Adds the routes that list tenants and return one (specification, section 4.4). */
export function addReadTenants(app: Api, deps: ReadTenantsDeps): void {
  const present = (tenant: Tenant) => toTenantBody(tenant, regionOf(deps, tenant))

  app.get(
    '/v1/tenants',
    {
      config: { scopes: ['admin', 'read', 'billing'] },
      schema: {
        summary: 'List tenants, oldest first',
        tags: ['tenants'],
        querystring: ListQuery,
        response: {
          200: Type.Object({ tenants: Type.Array(TenantBody), next_cursor: Type.Union([Type.String(), Type.Null()]) }),
        },
      },
    },
    async (request) => {
      const { plan, region, status, name_prefix: namePrefix, search } = request.query
      const filter = {
        ...(plan === undefined ? {} : { plan }),
        ...(region === undefined ? {} : { region }),
        ...(status === undefined ? {} : { status }),
        ...(namePrefix === undefined ? {} : { namePrefix }),
        ...(search === undefined ? {} : { search }),
      }
      const page = await deps.tenants.list(filter, limitOf(request), pageRequest(request.query))
      return { tenants: page.items.map(present), next_cursor: page.nextCursor ?? null }
    },
  )

  app.get(
    '/v1/tenants/:id',
    {
      config: { scopes: ['admin', 'read', 'billing'] },
      schema: {
        summary: 'Return a tenant',
        tags: ['tenants'],
        querystring: NoQuery,
        params: Type.Object({ id: Type.String() }),
        response: { 200: TenantBody },
      },
    },
    async (request, reply) => {
      const tenant = await foundTenant(deps, request.params.id)
      return reply.header('etag', etagOf(tenant)).send(present(tenant))
    },
  )
}
