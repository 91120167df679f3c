// /v1/regions/{id}/databases, /v1/regions/{id}/rebalance and …/rebalances: the load of shared databases, and its relief by moves.
import { Type } from 'typebox'
import type { Api } from '../http/api.ts'
import { respondOnce, type ResponseDeps } from '../http/idempotency.ts'
import { NoBody, NoQuery, PageQuery, pageRequest, writeContext } from '../http/parameters.ts'
import type { Clock } from '../platform/clock.ts'
import { ControlError } from '../platform/errors.ts'
import { regionInPath, superuserOf, type RegionConfig } from '../regions/index.ts'
import { homesPerDatabase, sharedDatabaseName } from '../tenants/index.ts'
import { measureHomes } from './measure-homes.ts'
import { maxPlannedMoves, planMoves, type MeasuredDatabase, type RebalancePlan } from './plan-moves.ts'
import { exceededLimits, rebalanceMoveStates, rebalanceStates, type DatabaseLoad, type Rebalance } from './rebalance.ts'
import type { StoredDatabase } from './store-rows.ts'
import type { RebalanceStore } from './store.ts'

const measureMilliseconds = 60_000

const Maybe = Type.Union([Type.String(), Type.Null()])
const Id = Type.Object({ id: Type.String() })

/** The fields of a shared database, as it is and as it would be. */
const load = {
  name: Type.String(),
  homes: Type.Integer({ description: 'Homes of tenants, and those that are made in advance' }),
  max_homes: Type.Integer(),
  max_bytes: Type.Union([Type.Integer(), Type.Null()], { description: 'null is unlimited' }),
  exceeds: Type.Array(Type.Enum(['homes', 'bytes']), { description: 'The limits that the database exceeds' }),
}

const DatabaseBody = Type.Object({
  ...load,
  bytes: Type.Union([Type.Integer(), Type.Null()], { description: 'null before the first measurement' }),
  measured_at: Type.Union([Type.String(), Type.Null()], { description: 'ISO 8601, UTC' }),
})

const MoveBody = Type.Object({
  tenant_id: Type.String(),
  from: Type.String(),
  to: Type.String(),
  bytes: Type.Integer({ description: 'The size of the home when the move was planned' }),
})

const PlanBody = Type.Object({
  region: Type.String(),
  moves: Type.Array(MoveBody, { description: `At most ${maxPlannedMoves}` }),
  databases_after: Type.Array(Type.Object({ ...load, bytes: Type.Integer() }), {
    description: 'The databases as they would be, also those that would be opened',
  }),
})

const RebalanceBody = Type.Object({
  id: Type.String(),
  region: Type.String(),
  state: Type.Enum([...rebalanceStates]),
  moves: Type.Array(
    Type.Object({
      ...MoveBody.properties,
      state: Type.Enum([...rebalanceMoveStates]),
      operation_id: Maybe,
      error: Type.Union([Type.String(), Type.Null()], { description: 'The reason for `failed` and `skipped`' }),
    }),
  ),
  created: Type.String({ description: 'ISO 8601, UTC' }),
  finished: Maybe,
})

/** The dependencies of the routes of shared databases. */
export interface RebalanceRoutesDeps extends ResponseDeps {
  rebalances: RebalanceStore
  regions: readonly RegionConfig[]
  clock: Pick<Clock, 'timeout'>
}

/** Adds the routes that list and limit shared databases, and that plan, run and cancel rebalances. */
export function addRebalanceRoutes(app: Api, deps: RebalanceRoutesDeps): void {
  addDatabaseRoutes(app, deps)

  app.post(
    '/v1/regions/:id/rebalance',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Move homes out of shared databases that exceed a limit',
        description:
          'With `dry_run`, which is the default, the response is the plan, and nothing changes. Otherwise, its moves begin, two ' +
          'at a time, and each is an operation of its tenant.',
        tags: ['plans'],
        params: Id,
        querystring: NoQuery,
        body: Type.Object({ dry_run: Type.Optional(Type.Boolean()) }, { additionalProperties: false }),
        response: { 200: PlanBody, 202: RebalanceBody },
      },
    },
    async (request, reply) => {
      const context = writeContext(request)
      const region = regionInPath(deps.regions, request.params.id)
      const plan = await planOf(region, deps)
      if (request.body.dry_run !== false) return reply.status(200).send(presentPlan(region.id, plan))
      reply.status(202)
      return respondOnce(deps, context, reply, async (record) => {
        const made = await record((write) => deps.rebalances.create(region.id, plan.moves, write), present)
        reply.header('location', `/v1/regions/${region.id}/rebalances/${made.id}`)
        return present(made)
      })
    },
  )

  app.get(
    '/v1/regions/:id/rebalances',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'List the rebalances of a region, newest first',
        tags: ['plans'],
        params: Id,
        querystring: Type.Object(PageQuery, { additionalProperties: false }),
        response: { 200: Type.Object({ rebalances: Type.Array(RebalanceBody), next_cursor: Maybe }) },
      },
    },
    async (request) => {
      const { id } = regionInPath(deps.regions, request.params.id)
      const { items, nextCursor } = await deps.rebalances.list(id, pageRequest(request.query))
      return { rebalances: items.map(present), next_cursor: nextCursor ?? null }
    },
  )

  const Rebalance = Type.Object({ id: Type.String(), rebalance: Type.String() })
  app.get(
    '/v1/regions/:id/rebalances/:rebalance',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'Return a rebalance with its moves',
        tags: ['plans'],
        params: Rebalance,
        querystring: NoQuery,
        response: { 200: RebalanceBody },
      },
    },
    async ({ params }) =>
      present(await deps.rebalances.get(regionInPath(deps.regions, params.id).id, params.rebalance)),
  )

  app.post(
    '/v1/regions/:id/rebalances/:rebalance/cancel',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Cancel a rebalance',
        description: 'No further move begins. Those in progress end, unless their operations are canceled too.',
        tags: ['plans'],
        params: Rebalance,
        querystring: NoQuery,
        body: NoBody,
        response: { 202: RebalanceBody },
      },
    },
    async (request, reply) => {
      const { actor } = writeContext(request)
      const { id } = regionInPath(deps.regions, request.params.id)
      reply.status(202)
      return present(await deps.record(actor, (write) => deps.rebalances.cancel(id, request.params.rebalance, write)))
    },
  )
}

function addDatabaseRoutes(app: Api, deps: RebalanceRoutesDeps): void {
  app.get(
    '/v1/regions/:id/databases',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: "List a region's shared databases, oldest first",
        description: 'They are measured every five minutes.',
        tags: ['plans'],
        params: Id,
        querystring: NoQuery,
        response: { 200: Type.Object({ databases: Type.Array(DatabaseBody) }) },
      },
    },
    async (request) => {
      const { id } = regionInPath(deps.regions, request.params.id)
      return { databases: (await deps.rebalances.databases(id)).map(presentDatabase) }
    },
  )

  app.patch(
    '/v1/regions/:id/databases/:database',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Change the limits of a shared database',
        description: 'New tenants are not created in a database at its limit. Only a rebalance moves homes out of it.',
        tags: ['plans'],
        params: Type.Object({ id: Type.String(), database: Type.String() }),
        querystring: NoQuery,
        body: Type.Object(
          {
            max_homes: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })),
            max_bytes: Type.Optional(
              Type.Union([Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), Type.Null()], {
                description: 'null is unlimited',
              }),
            ),
          },
          { additionalProperties: false, minProperties: 1 },
        ),
        response: { 200: DatabaseBody },
      },
    },
    async (request) => {
      const { actor } = writeContext(request)
      const { id } = regionInPath(deps.regions, request.params.id)
      const { max_homes: maxHomes, max_bytes: maxBytes } = request.body
      const limits = {
        ...(maxHomes === undefined ? {} : { maxHomes }),
        ...(maxBytes === undefined ? {} : { maxBytes }),
      }
      return presentDatabase(
        await deps.record(actor, (write) => deps.rebalances.limit(id, request.params.database, limits, write)),
      )
    },
  )
}

/** Measures the region's databases, and plans their relief. */
async function planOf(region: RegionConfig, { rebalances, clock }: RebalanceRoutesDeps): Promise<RebalancePlan> {
  const postgresUrl = superuserOf(region)
  const [databases, movable] = await Promise.all([rebalances.databases(region.id), rebalances.movable(region.id)])
  const signal = clock.timeout(measureMilliseconds)
  const measured: MeasuredDatabase[] = []
  for (const database of databases) {
    const { bytes, homes } = await measureHomes({ postgresUrl, database: database.name }, signal).catch(
      (cause: unknown) => {
        throw new ControlError('UNAVAILABLE', `The Postgres of the region "${region.id}" does not respond.`, { cause })
      },
    )
    measured.push({
      ...database,
      bytes,
      movable: (movable.get(database.name) ?? []).map(({ id }) => ({ tenantId: id, bytes: homes.get(id) ?? 0 })),
    })
  }
  return planMoves(measured, (count) => ({
    name: sharedDatabaseName(databases.length + 1 + count),
    maxHomes: homesPerDatabase,
  }))
}

function presentLoad(database: DatabaseLoad) {
  return {
    name: database.name,
    homes: database.homes,
    max_homes: database.maxHomes,
    max_bytes: database.maxBytes ?? null,
    exceeds: exceededLimits(database),
  }
}

function presentDatabase({ measuredAt, ...database }: StoredDatabase) {
  return {
    ...presentLoad(database),
    bytes: database.bytes ?? null,
    measured_at: measuredAt?.toISOString() ?? null,
  }
}

function presentPlan(region: string, { moves, after }: RebalancePlan) {
  return {
    region,
    moves: moves.map(({ tenantId, from, to, bytes }) => ({ tenant_id: tenantId, from, to, bytes })),
    databases_after: after.map((database) => ({ ...presentLoad(database), bytes: Math.max(0, database.bytes) })),
  }
}

function present({ id, region, state, moves, createdAt, finishedAt }: Rebalance) {
  return {
    id,
    region,
    state,
    moves: moves.map(({ tenantId, from, to, bytes, state, operationId, error }) => ({
      tenant_id: tenantId,
      from,
      to,
      bytes,
      state,
      operation_id: operationId ?? null,
      error: error ?? null,
    })),
    created: createdAt.toISOString(),
    finished: finishedAt?.toISOString() ?? null,
  }
}
