// GET /v1/operations and /v1/operations/{id}: pending, running and finished operations.
import { Type } from 'typebox'
import { ControlError } from '../platform/errors.ts'
import { operationKinds } from './tenant.ts'
import type { Api } from '../http/api.ts'
import { limitOf } from '../keys/index.ts'
import type { TenantStore } from './store.ts'
import { isUuid } from '../platform/uuid.ts'
import { PageQuery, pageRequest, textPattern, NoQuery } from '../http/parameters.ts'
import { OperationBody, toOperationBody } from './tenant-body.ts'

const ListQuery = Type.Object(
  {
    ...PageQuery,
    tenant_id: Type.Optional(Type.String({ pattern: textPattern })),
    kind: Type.Optional(Type.Enum([...operationKinds])),
    state: Type.Optional(Type.Enum(['pending', 'running', 'succeeded', 'failed', 'superseded'])),
    order: Type.Optional(Type.Enum(['oldest', 'newest'], { description: 'Which are first, default `oldest`' })),
  },
  { additionalProperties: false },
)

/** Dependencies of the routes of operations. */
export interface OperationRoutesDeps {
  tenants: TenantStore
}

/** Adds the routes that return operations on tenants and their progress. */
export function addOperationRoutes(app: Api, deps: OperationRoutesDeps): void {
  app.get(
    '/v1/operations',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'List operations, oldest first unless `order` is `newest`',
        tags: ['operations'],
        querystring: ListQuery,
        response: {
          200: Type.Object({
            operations: Type.Array(OperationBody),
            next_cursor: Type.Union([Type.String(), Type.Null()]),
          }),
        },
      },
    },
    async (request) => {
      const { tenant_id: tenantId, kind, state, order } = request.query
      const filter = {
        ...(tenantId === undefined ? {} : { tenantId }),
        ...(kind === undefined ? {} : { kind }),
        ...(state === undefined ? {} : { state }),
      }
      const page = await deps.tenants.listOperations(filter, limitOf(request), pageRequest(request.query), order)
      return { operations: page.items.map(toOperationBody), next_cursor: page.nextCursor ?? null }
    },
  )

  app.get(
    '/v1/operations/:id',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'Return an operation',
        tags: ['operations'],
        querystring: NoQuery,
        params: Type.Object({ id: Type.String() }),
        response: { 200: OperationBody },
      },
    },
    async (request) => {
      const operation = isUuid(request.params.id) ? await deps.tenants.getOperation(request.params.id) : undefined
      if (operation === undefined) throw new ControlError('OPERATION_NOT_FOUND', 'There is no such operation.')
      return toOperationBody(operation)
    },
  )
}
