// POST /v1/tenants/{id}/move, …/move/revert and /v1/operations/{id}/cancel: moves a home to another shared database of its
// region, and back.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type, type Static } from 'typebox'
import type { Api } from '../http/api.ts'
import { respondOnce, type ResponseDeps } from '../http/idempotency.ts'
import { NoBody, NoQuery, waitSeconds, writeContext } from '../http/parameters.ts'
import { limitOf } from '../keys/index.ts'
import { isUuid } from '../platform/uuid.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import { ControlError } from '../platform/errors.ts'
import type { RegionConfig } from '../regions/index.ts'
import {
  ChangedTenant,
  foundTenant,
  OperationBody,
  toChangedTenant,
  toOperationBody,
  type TenantWrite,
  waitUntilSettled,
  type WaitDeps,
} from '../tenants/index.ts'
import { cancelMove } from './store.ts'

const Id = Type.Object({ id: Type.String() })
type TenantRequest = FastifyRequest<{ Params: { id: string } }>

/** Dependencies of the routes of moves. */
export interface MoveRoutesDeps extends ResponseDeps, WaitDeps {
  regions: readonly RegionConfig[]
}

/** Adds the routes that move a home, and that cancel a move. */
export function addMoveRoutes(app: Api, deps: MoveRoutesDeps): void {
  type Begin = (id: string, write: RecordedWrite) => Promise<TenantWrite>

  async function begin(
    request: TenantRequest,
    reply: FastifyReply,
    change: Begin,
  ): Promise<Static<typeof ChangedTenant>> {
    const wait = waitSeconds(request)
    const context = writeContext(request)
    const found = await foundTenant(deps, request.params.id)
    reply.status(202)
    return respondOnce(deps, context, reply, async (record) => {
      const present = (write: TenantWrite) => toChangedTenant(deps, write)
      const begun = await record((write) => change(found.id, write), present)
      return present(await waitUntilSettled(deps, begun, wait, request))
    })
  }

  app.post(
    '/v1/tenants/:id/move',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: "Move a tenant's home to another shared database of its region",
        description:
          'The tenant is served meanwhile; its requests wait for some seconds at the end. Keys, files and URL stay. ' +
          'Responds at once; with `Prefer: wait=N` when the move has ended, or after N seconds.',
        tags: ['tenants'],
        params: Id,
        querystring: NoQuery,
        body: Type.Object(
          {
            database: Type.String({
              description: 'A shared database of the region, or the name of the next one, which is then opened',
              examples: ['tenantry_homes_2'],
            }),
          },
          { additionalProperties: false },
        ),
        response: { 202: ChangedTenant },
      },
    },
    (request, reply) => begin(request, reply, (id, write) => deps.tenants.move(id, request.body.database, write)),
  )

  app.post(
    '/v1/tenants/:id/move/revert',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: "Return a tenant's home to the database that its last move has left",
        description:
          'Possible until `revertible_until` of the move. No write is lost, and nothing is copied; requests wait as they do ' +
          'in a move. Responds at once; with `Prefer: wait=N` when the home has returned, or after N seconds.',
        tags: ['tenants'],
        params: Id,
        querystring: NoQuery,
        body: NoBody,
        response: { 202: ChangedTenant },
      },
    },
    (request, reply) => begin(request, reply, (id, write) => deps.tenants.revertMove(id, limitOf(request), write)),
  )

  app.post(
    '/v1/operations/:id/cancel',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Cancel a move that has not switched yet',
        description: 'The tenant continues in its database. The operation fails once nothing of the move is left.',
        tags: ['operations'],
        params: Id,
        querystring: NoQuery,
        body: NoBody,
        response: { 202: OperationBody },
      },
    },
    async (request, reply) => {
      const { actor } = writeContext(request)
      const { id } = request.params
      if (!isUuid(id)) throw new ControlError('OPERATION_NOT_FOUND', 'There is no such operation.')
      reply.status(202)
      return toOperationBody(await deps.record(actor, (write) => cancelMove(id, write)))
    },
  )
}
