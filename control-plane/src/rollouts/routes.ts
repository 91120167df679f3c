// /v1/rollouts: changes of an image that are carried out tenant by tenant and can be rolled back.
import { Type } from 'typebox'
import { ControlError } from '../platform/errors.ts'
import { rolloutComponents, rolloutStates, type Rollout, type RolloutComponent } from './rollout.ts'
import { componentError } from './rollout-image.ts'
import type { Api } from '../http/api.ts'
import type { RolloutStore } from './store.ts'
import type { RegionConfig } from '../regions/index.ts'
import type { Engine } from '../engines/index.ts'
import type { Clock } from '../platform/clock.ts'
import { respondOnce, type ResponseDeps } from '../http/idempotency.ts'
import { limitOf } from '../keys/index.ts'
import { PageQuery, pageRequest, textPattern, writeContext, NoQuery } from '../http/parameters.ts'

const imageMilliseconds = 10_000
/** A cluster's services are replaced one after the other. */
const defaultDeadlineSeconds: Record<RolloutComponent, number> = { runtime: 120, postgres: 120, 'cluster-member': 600 }
const imageDescription =
  'name:tag, name@sha256:… or sha256:… of an image on the engine with the label org.tenantry.component'

const Maybe = Type.Union([Type.String(), Type.Null()])
const Id = Type.Object({ id: Type.String() })

const Requested = Type.Object(
  {
    region: Type.String(),
    component: Type.Enum([...rolloutComponents]),
    image: Type.String({ minLength: 1, maxLength: 300, pattern: textPattern, description: imageDescription }),
    canary: Type.Optional(
      Type.String({
        maxLength: 100,
        pattern: textPattern,
        description: "Tenant that is moved first; default: the region's oldest running tenant",
      }),
    ),
    wave_size: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 64,
        description: 'Maximum size of the waves, which have 1, 2, 4 … tenants; default 8',
      }),
    ),
    soak_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 3600,
        description: 'Time in which each tenant of a wave must stay healthy; default 10',
      }),
    ),
    deadline_seconds: Type.Optional(
      Type.Integer({
        minimum: 10,
        maximum: 7200,
        description: 'Time in which each tenant must become healthy; default 120, for cluster-member 600',
      }),
    ),
  },
  { additionalProperties: false },
)

const RolloutBody = Type.Object({
  id: Type.String(),
  region: Type.String(),
  component: Type.Enum([...rolloutComponents]),
  image: Type.String(),
  image_id: Type.String({ description: 'Digest of the image when the rollout was created' }),
  state: Type.Enum([...rolloutStates]),
  wave: Type.Integer({ description: 'Waves that have begun' }),
  canary: Maybe,
  wave_size: Type.Integer(),
  soak_seconds: Type.Integer(),
  deadline_seconds: Type.Integer(),
  moved: Type.Integer({ description: 'Tenants that have the new image' }),
  error: Maybe,
  created: Type.String({ description: 'ISO 8601, UTC' }),
  finished: Maybe,
})

const RolloutWithTenants = Type.Object({
  ...RolloutBody.properties,
  tenants: Type.Array(
    Type.Object({
      tenant_id: Type.String(),
      wave: Type.Integer({ description: '0: stopped or unhealthy before the rollout, which does not wait for it' }),
      state: Type.Enum(['moving', 'moved', 'returning', 'returned', 'lost', 'gone']),
      from: Type.String({ description: 'Digest of the former image' }),
    }),
  ),
})

/** Dependencies of the routes of rollouts. */
export interface RolloutRoutesDeps extends ResponseDeps {
  rollouts: RolloutStore
  regions: readonly Pick<RegionConfig, 'id' | 'docker'>[]
  /** Returns a region's engine; undefined if its parts are started by other means. */
  engineOf(region: string): Engine | undefined
  clock: Pick<Clock, 'timeout'>
}

/** Adds the routes of rollouts: create, list, return and cancel. */
export function addRolloutRoutes(app: Api, deps: RolloutRoutesDeps): void {
  app.post(
    '/v1/rollouts',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: "Change the image of a region's dedicated tenants",
        description:
          'One tenant is first, and the rest follow in growing waves. At the first unhealthy tenant, all get their former image back.',
        tags: ['rollouts'],
        querystring: NoQuery,
        body: Requested,
        response: { 202: RolloutWithTenants },
      },
    },
    async (request, reply) => {
      const {
        region,
        component,
        image,
        canary,
        wave_size: waveSize = 8,
        soak_seconds: soakSeconds = 10,
        deadline_seconds: deadlineSeconds = defaultDeadlineSeconds[component],
      } = request.body
      const context = writeContext(request)
      reply.status(202)
      return respondOnce(deps, context, reply, async (record) => {
        if (deadlineSeconds <= soakSeconds)
          throw new ControlError('INVALID_FIELD', 'Field "deadline_seconds" must be greater than "soak_seconds".')
        const imageId = await imageOf(deps, region, component, image)
        const wanted = { region, component, image, imageId, canary, waveSize, soakSeconds, deadlineSeconds }
        const made = await record((write) => deps.rollouts.create(wanted, write), presentAll)
        reply.header('location', `/v1/rollouts/${made.id}`)
        return presentAll(made)
      })
    },
  )

  app.get(
    '/v1/rollouts',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'List rollouts, oldest first',
        tags: ['rollouts'],
        querystring: Type.Object(
          { ...PageQuery, region: Type.Optional(Type.String({ pattern: textPattern })) },
          { additionalProperties: false },
        ),
        response: { 200: Type.Object({ rollouts: Type.Array(RolloutBody), next_cursor: Maybe }) },
      },
    },
    async (request) => {
      const { region } = request.query
      const page = await deps.rollouts.list(
        region === undefined ? {} : { region },
        limitOf(request),
        pageRequest(request.query),
      )
      return { rollouts: page.items.map(present), next_cursor: page.nextCursor ?? null }
    },
  )

  app.get(
    '/v1/rollouts/:id',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'Return a rollout with the tenants that it has moved',
        tags: ['rollouts'],
        querystring: NoQuery,
        params: Id,
        response: { 200: RolloutWithTenants },
      },
    },
    async (request) => {
      const rollout = await deps.rollouts.get(request.params.id)
      if (rollout === undefined) throw new ControlError('ROLLOUT_NOT_FOUND', 'There is no such rollout.')
      return presentAll(rollout)
    },
  )

  app.post(
    '/v1/rollouts/:id/cancel',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Cancel a rollout',
        description: 'Each tenant that it has moved gets its former image back.',
        tags: ['rollouts'],
        querystring: NoQuery,
        params: Id,
        response: { 202: RolloutWithTenants },
      },
    },
    async (request, reply) => {
      const { actor } = writeContext(request)
      const cancelled = await deps.record(actor, (write) => deps.rollouts.cancel(request.params.id, write))
      return reply.status(202).send(presentAll(cancelled))
    },
  )
}

/**
 * Returns the image's digest on the engine. A tag that moves later does not change a rollout in progress.
 * @throws EngineError IMAGE_MISSING; ControlError WRONG_IMAGE for an image of another component
 */
async function imageOf(
  deps: RolloutRoutesDeps,
  regionId: string,
  component: RolloutComponent,
  image: string,
): Promise<string> {
  if (!deps.regions.some(({ id }) => id === regionId)) {
    throw new ControlError(
      'UNKNOWN_REGION',
      `Unknown region "${regionId.slice(0, 100)}". Allowed: ${deps.regions.map(({ id }) => id).join(', ')}.`,
    )
  }
  const engine = deps.engineOf(regionId)
  if (engine === undefined)
    throw new ControlError('IMAGE_MISSING', `The region "${regionId}" has no engine that stores images.`)
  const found = await engine.image(image, deps.clock.timeout(imageMilliseconds))
  const error = componentError(component, image, found)
  if (error !== undefined) throw new ControlError('WRONG_IMAGE', error)
  return found.id
}

function present(rollout: Rollout) {
  return {
    id: rollout.id,
    region: rollout.region,
    component: rollout.component,
    image: rollout.image,
    image_id: rollout.imageId,
    state: rollout.state,
    wave: rollout.wave,
    canary: rollout.canary ?? null,
    wave_size: rollout.waveSize,
    soak_seconds: rollout.soakSeconds,
    deadline_seconds: rollout.deadlineSeconds,
    moved: rollout.tenants.filter(({ state }) => state === 'moving' || state === 'moved').length,
    error: rollout.error ?? null,
    created: rollout.createdAt.toISOString(),
    finished: rollout.finishedAt?.toISOString() ?? null,
  }
}

function presentAll(rollout: Rollout) {
  const tenants = rollout.tenants.map(({ tenantId, wave, state, from }) => ({ tenant_id: tenantId, wave, state, from }))
  return { ...present(rollout), tenants }
}
