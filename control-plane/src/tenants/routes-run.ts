// POST /v1/tenants/{id}/restart, /pause, /wake and /undelete: they affect a tenant's services and change none of its
// properties.
import { Type } from 'typebox'
import type { TenantState, TenantWrite } from './tenant-write.ts'
import type { Api } from '../http/api.ts'
import { requireDedicated } from './dedicated.ts'
import type { RegionConfig } from '../regions/index.ts'
import { respondOnce, type ResponseDeps } from '../http/idempotency.ts'
import { foundTenant } from './lookup.ts'
import { NoBody, waitSeconds, writeContext, NoQuery } from '../http/parameters.ts'
import { waitUntilSettled, type WaitDeps } from './wait.ts'
import { ChangedTenant, tenantStateBody, toChangedTenant, toTenantStateBody } from './written-tenant.ts'

const Id = Type.Object({ id: Type.String() })
const State = tenantStateBody('null if no change was necessary')

/** Dependencies of the routes that stop and start a tenant. */
export interface RunTenantDeps extends ResponseDeps, WaitDeps {
  regions: readonly RegionConfig[]
}

/** Adds the routes that restart, pause, wake and undelete a tenant. */
export function addRunTenant(app: Api, deps: RunTenantDeps): void {
  app.post(
    '/v1/tenants/:id/restart',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: "Restart a tenant's own services",
        description: 'Its data stays. Stopped services restart when the tenant next runs.',
        tags: ['tenants'],
        params: Id,
        querystring: NoQuery,
        body: NoBody,
        response: { 202: ChangedTenant },
      },
    },
    async (request, reply) => {
      const wait = waitSeconds(request)
      const context = writeContext(request)
      const tenant = await foundTenant(deps, request.params.id)
      requireDedicated(tenant, 'A restart')
      reply.status(202)
      return respondOnce(deps, context, reply, async (record) => {
        const response = (write: TenantWrite) => toChangedTenant(deps, write)
        const restarted = await record((write) => deps.tenants.restart(tenant.id, write), response)
        return response(await waitUntilSettled(deps, restarted, wait, request))
      })
    },
  )

  const present = (state: TenantState) => toTenantStateBody(deps, state)

  for (const [action, summary, description] of [
    [
      'pause',
      "Stop a tenant's own services until its next request",
      'Its data stays. The gateway holds the next request while the tenant wakes.',
    ],
    ['wake', 'Wake a paused tenant', 'A tenant that is not paused stays unchanged.'],
    [
      'undelete',
      'Revert the deletion of a tenant within its grace time',
      'The tenant is served again, with everything that it had. A tenant that is not deleted stays unchanged.',
    ],
  ] as const) {
    app.post(
      `/v1/tenants/:id/${action}`,
      {
        config: { scopes: ['admin'] },
        schema: {
          summary,
          description,
          tags: ['tenants'],
          params: Id,
          querystring: NoQuery,
          body: NoBody,
          response: { 202: State },
        },
      },
      async (request, reply) => {
        const wait = waitSeconds(request)
        const { actor } = writeContext(request)
        const tenant = await foundTenant(deps, request.params.id)
        if (action === 'pause') requireDedicated(tenant, 'A pause')
        const { operation, ...state } = await deps.record(actor, (write) => deps.tenants[action](tenant.id, write))
        reply.status(202)
        if (operation === undefined) return present({ ...state, operation })
        return present(await waitUntilSettled(deps, { ...state, operation }, wait, request))
      },
    )
  }
}
