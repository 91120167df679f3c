// /v1/regions/{id}/databases, /v1/regions/{id}/rebalance and …/rebalances: the load of shared databases and of hosts, and its relief.
import { Type } from 'typebox'
import type { Api } from '../http/api.ts'
import { respondOnce, type ResponseDeps } from '../http/idempotency.ts'
import { NoBody, NoQuery, PageQuery, pageRequest, writeContext } from '../http/parameters.ts'
import type { Clock } from '../platform/clock.ts'
import { ControlError } from '../platform/errors.ts'
import { regionInPath, superuserOf, type RegionConfig } from '../regions/index.ts'
import { homesPerDatabase, sharedDatabaseName } from '../tenants/index.ts'
import { measureHomes } from './measure-homes.ts'
import { noHostPlan, planHostMoves, type HostPlan } from './plan-host-moves.ts'
import { planMoves, type MeasuredDatabase, type RebalancePlan } from './plan-moves.ts'
import type { ReadHosts } from './read-hosts.ts'
import { DatabaseBody, PlanBody, present, presentDatabase, presentPlan, RebalanceBody } from './rebalance-body.ts'
import type { RebalanceStore } from './store.ts'

const measureMilliseconds = 60_000

const Maybe = Type.Union([Type.String(), Type.Null()])
const Id = Type.Object({ id: Type.String() })

/** The dependencies of the routes of shared databases. */
export interface RebalanceRoutesDeps extends ResponseDeps {
  rebalances: RebalanceStore
  /** Reads the hosts of a region with several. */
  readHosts: ReadHosts
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
        summary: 'Move homes out of shared databases that exceed a limit, and services of clusters between hosts',
        description:
          'With `dry_run`, which is the default, the response is the plan, and nothing changes. Otherwise, its moves begin, two ' +
          'at a time, and each is an operation of its tenant. In a region with several hosts, services of clusters move from the ' +
          'host with the smallest part of free memory to that with the largest, and switchovers spread the primaries.',
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
      const plan = () => Promise.all([planOf(region, deps), hostPlanOf(region.id, deps)])
      if (request.body.dry_run !== false) return reply.status(200).send(presentPlan(region.id, ...(await plan())))
      reply.status(202)
      return respondOnce(deps, context, reply, async (record) => {
        const [{ moves }, hostPlan] = await plan()
        const planned = { ...hostPlan, moves }
        const made = await record((write) => deps.rebalances.create(region.id, planned, write), present)
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

/** Plans the moves between the hosts of a region with several. */
async function hostPlanOf(region: string, { readHosts }: RebalanceRoutesDeps): Promise<HostPlan> {
  const found = await readHosts(region)
  return found === undefined ? noHostPlan : planHostMoves(found.hosts, found.clusters)
}
