// POST /v1/tenants/{id}/switchover: makes another member of a tenant's cluster the primary.
import { Type } from 'typebox'
import { type ClusterState, readCluster, toMemberBody, unknownCluster } from '../clusters/index.ts'
import { callEngine, type Engine, EngineError } from '../engines/index.ts'
import type { Api } from '../http/api.ts'
import { respondOnce, type ResponseDeps } from '../http/idempotency.ts'
import { NoQuery, waitSeconds, writeContext } from '../http/parameters.ts'
import type { Clock } from '../platform/clock.ts'
import { ControlError } from '../platform/errors.ts'
import type { RegionConfig } from '../regions/index.ts'
import { clusterMembers } from '../stacks/index.ts'
import { engineOf, requireCluster } from './dedicated.ts'
import { foundTenant } from './lookup.ts'
import type { TenantState } from './tenant-write.ts'
import type { Switchover } from './tenant.ts'
import { waitUntilSettled, type WaitDeps } from './wait.ts'
import { tenantStateBody, toTenantStateBody } from './written-tenant.ts'

const Body = Type.Union([
  Type.Object(
    {
      to: Type.Optional(Type.Enum([...clusterMembers], { description: 'Default: the replica with the smallest lag' })),
    },
    { additionalProperties: false },
  ),
  Type.Null(),
])
const State = tenantStateBody('null if the member is the primary already')

/** Dependencies of the route of a switchover. */
export interface SwitchoverDeps extends ResponseDeps, WaitDeps {
  regions: readonly RegionConfig[]
  /** Returns a region's engine; undefined if its parts are started by other means. */
  engineOf(region: string): Engine | undefined
  clock: Pick<Clock, 'timeout'>
}

/** Adds the route that makes another member of a tenant's cluster the primary. */
export function addSwitchover(app: Api, deps: SwitchoverDeps): void {
  app.post(
    '/v1/tenants/:id/switchover',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: "Make another member of a tenant's cluster the primary",
        description: 'No committed row is lost. Sessions of the former primary end, and writes wait for some seconds.',
        tags: ['tenants'],
        params: Type.Object({ id: Type.String() }),
        querystring: NoQuery,
        body: Body,
        response: { 202: State },
      },
    },
    async (request, reply) => {
      const wait = waitSeconds(request)
      const context = writeContext(request)
      const tenant = await foundTenant(deps, request.params.id)
      requireCluster(tenant, 'A switchover')
      reply.status(202)
      return respondOnce(deps, context, reply, async (record) => {
        if (tenant.desired !== 'active')
          throw new ControlError('NOT_ACTIVE', `Only an active tenant has a primary. This one is ${tenant.desired}.`)
        const present = (state: TenantState) => toTenantStateBody(deps, state)
        const engine = engineOf(deps, tenant)
        const cluster = await callEngine(deps.clock, (signal) => readCluster(engine, tenant.id, signal)).catch(
          unlessUnhealthy,
        )
        const switchover = switchoverOf(cluster, request.body?.to ?? null)
        if (switchover === undefined) return present({ tenant, operation: undefined })
        const begun = await record((write) => deps.tenants.switchOver(tenant.id, switchover, write), present)
        return present(await waitUntilSettled(deps, begun, wait, request))
      })
    },
  )
}

/** Converts the error of a cluster of which no member responds. @throws the error of the engine itself */
function unlessUnhealthy(error: unknown): ClusterState {
  if (error instanceof EngineError && error.code === 'UNHEALTHY') return unknownCluster
  throw error
}

/**
 * Returns the switchover; undefined if the member is the primary already. @throws ControlError NO_CANDIDATE with each member's
 * state
 */
function switchoverOf({ primary, candidates, members }: ClusterState, to: string | null): Switchover | undefined {
  if (to !== null && to === primary) return undefined
  if (primary !== undefined && (to === null ? candidates.length > 0 : candidates.includes(to)))
    return { from: primary, to }
  const what = to === null ? 'No replica can' : `The member ${to} cannot`
  throw new ControlError('NO_CANDIDATE', `${what} become the primary at present.`, {
    detail: { members: members.map(toMemberBody) },
  })
}
