// GET /v1/plans and /v1/regions: what a tenant can be created with.
import { RateLimit } from '@tenantry/contract'
import { Type } from 'typebox'
import { isolationsOf } from '../engines/index.ts'
import type { Api } from '../http/api.ts'
import type { PlanStore } from './plan.ts'
import type { RegionCondition, RegionConfig } from '../regions/index.ts'
import { NoQuery } from '../http/parameters.ts'

const MaybeInteger = Type.Union([Type.Integer(), Type.Null()], { description: 'null is unlimited' })

/** What the routes of plans and regions are given. */
export interface PlanRoutesDeps {
  plans: PlanStore
  regions: readonly RegionConfig[]
  /** How a region was when the leader last looked; undefined where nobody has. */
  regionCondition(region: string): RegionCondition | undefined
}

/** Adds the route that lists plans and their quotas (specification, section 8). */
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
                  description: 'Of requests at each gateway; null is unlimited',
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
        summary: 'Regions and what they can do',
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
                    description: 'As the region was last seen; empty where nobody looks, or another control plane does',
                  },
                ),
              }),
            ),
          }),
        },
      },
    },
    () => ({
      regions: deps.regions.map(({ id, engine, domain }) => {
        const condition = deps.regionCondition(id)
        return {
          id,
          engine,
          domain,
          isolations: [...isolationsOf(engine)],
          conditions: condition === undefined ? [] : [condition],
        }
      }),
    }),
  )
}
