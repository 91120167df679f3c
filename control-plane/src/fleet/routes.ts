// GET /v1/fleet and /v1/fleet/attention: all tenants in numbers, and those that need attention.
import { Type } from 'typebox'
import type { Api } from '../http/api.ts'
import { NoQuery, PageQuery, pageRequest } from '../http/parameters.ts'
import { attentionCodes } from './attention.ts'
import type { FleetStore } from './store.ts'

const Code = Type.Enum([...attentionCodes])
const Maybe = Type.Union([Type.String(), Type.Null()])
const Count = Type.Integer({ minimum: 0 })

/** The dependencies of the routes of the fleet. */
export interface FleetRoutesDeps {
  fleet: FleetStore
}

/** Adds the routes that count all tenants, and list those that need attention. */
export function addFleetRoutes(app: Api, deps: FleetRoutesDeps): void {
  app.get(
    '/v1/fleet',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'The number of tenants by status, and by reason for attention',
        tags: ['fleet'],
        querystring: NoQuery,
        response: {
          200: Type.Object({
            tenants: Count,
            by_status: Type.Record(Type.String(), Count),
            attention: Type.Object(Object.fromEntries(attentionCodes.map((code) => [code, Count]))),
          }),
        },
      },
    },
    async () => {
      const { total, byStatus, attention } = await deps.fleet.summary()
      return { tenants: total, by_status: byStatus, attention }
    },
  )

  app.get(
    '/v1/fleet/attention',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'Tenants that need attention, oldest first',
        tags: ['fleet'],
        querystring: Type.Object({ ...PageQuery, code: Type.Optional(Code) }, { additionalProperties: false }),
        response: {
          200: Type.Object({
            tenants: Type.Array(
              Type.Object({
                tenant_id: Type.String(),
                name: Type.String(),
                plan: Type.String(),
                region: Type.String(),
                status: Type.String(),
                reasons: Type.Array(Type.Object({ code: Code, message: Type.String(), since: Maybe }), {
                  description: 'The most urgent first',
                }),
              }),
            ),
            next_cursor: Maybe,
          }),
        },
      },
    },
    async (request) => {
      const { items, nextCursor } = await deps.fleet.inNeed(request.query.code, pageRequest(request.query))
      return {
        tenants: items.map(({ id, name, plan, region, status, reasons }) => ({
          tenant_id: id,
          name,
          plan,
          region,
          status,
          reasons: reasons.map(({ code, message, since }) => ({ code, message, since: since?.toISOString() ?? null })),
        })),
        next_cursor: nextCursor ?? null,
      }
    },
  )
}
