// GET /v1/plans and /v1/regions: the options for new tenants.
import { RateLimit } from '@tenantry/contract'
import { Type } from 'typebox'
import { isolationsOf } from '../engines/index.ts'
import type { Api } from '../http/api.ts'
import { limitOf, type KeyLimit } from '../keys/index.ts'
import type { PlanStore } from './store.ts'
import type { RegionCondition, RegionConfig } from '../regions/index.ts'
import { NoQuery } from '../http/parameters.ts'

const MaybeInteger = Type.Union([Type.Integer(), Type.Null()], { description: 'null is unlimited' })

/** The dependencies of the routes of plans and regions. */
export interface PlanRoutesDeps {
  plans: PlanStore
  regions: readonly RegionConfig[]
  /** Returns the conditions of all regions at the leader's last check, by region. */
  regionConditions(): Promise<ReadonlyMap<string, readonly RegionCondition[]>>
}

/** Adds the routes that list plans with their quotas, and regions (specification, section 8). */
export function addPlanRoutes(app: Api, deps: PlanRoutesDeps): void {
  app.get(
    '/v1/plans',
    {
      config: { scopes: ['admin', 'read', 'billing'] },
      schema: {
        summary: 'Plans and their quotas',
        tags: ['plans'],
        querystring: NoQuery,
        response: {
          200: Type.Object({
            plans: Type.Array(
              Type.Object({
                id: Type.String(),
                isolation: Type.String(),
                quotas: Type.Object({
                  documents_bytes: MaybeInteger,
                  files_bytes: MaybeInteger,
                  api_requests_per_month: MaybeInteger,
                  realtime_connections: MaybeInteger,
                }),
                rate_limit: Type.Union([RateLimit, Type.Null()], {
                  description: 'The rate of requests at each gateway; null is unlimited',
                }),
              }),
            ),
          }),
        },
      },
    },
    async () => ({
      plans: (await deps.plans.list()).map((plan) => ({
        id: plan.id,
        isolation: plan.isolation,
        quotas: {
          documents_bytes: plan.documentBytes,
          files_bytes: plan.fileBytes,
          api_requests_per_month: plan.requestsPerMonth,
          realtime_connections: plan.realtimeConnections,
        },
        rate_limit: plan.rate,
      })),
    }),
  )

  app.get(
    '/v1/regions',
    {
      config: { scopes: ['admin', 'read', 'billing'] },
      schema: {
        summary: 'Regions and their isolation models',
        tags: ['plans'],
        querystring: NoQuery,
        response: {
          200: Type.Object({
            regions: Type.Array(
              Type.Object({
                id: Type.String(),
                engine: Type.String(),
                domain: Type.String(),
                isolations: Type.Array(Type.String()),
                conditions: Type.Array(
                  Type.Object({
                    type: Type.String(),
                    status: Type.String(),
                    reason: Type.String(),
                    message: Type.String(),
                    observed_at: Type.String({ description: 'ISO 8601, UTC' }),
                  }),
                  {
                    description: 'The conditions at the last check; empty without a check',
                  },
                ),
              }),
            ),
          }),
        },
      },
    },
    async (request) => {
      const conditions = await deps.regionConditions()
      return {
        regions: regionsOf(limitOf(request), deps.regions).map((region) => {
          const { id, engine, domain } = region
          return {
            id,
            engine,
            domain,
            isolations: [...isolationsOf(region)],
            conditions: [...(conditions.get(id) ?? [])],
          }
        }),
      }
    },
  )
}

/** Returns the regions that a platform key may see. */
function regionsOf({ region }: KeyLimit, regions: readonly RegionConfig[]): readonly RegionConfig[] {
  return region === undefined ? regions : regions.filter(({ id }) => id === region)
}
