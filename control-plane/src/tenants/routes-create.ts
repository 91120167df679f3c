// POST /v1/tenants (specification, section 4.4).
import { randomBytes } from 'node:crypto'
import { Type, type Static } from 'typebox'
import type { Engine } from '../engines/index.ts'
import { ControlError } from '../platform/errors.ts'
import { chooseIsolation } from './choose-isolation.ts'
import { requireRoom, type RoomDeps } from './require-room.ts'
import { regionNamed } from './lookup.ts'
import { checkName } from './names.ts'
import { newSecrets } from './new-secrets.ts'
import type { TenantCreated } from './tenant-write.ts'
import type { Api } from '../http/api.ts'
import type { RegionConfig } from '../regions/index.ts'
import type { PlanStore } from '../plans/index.ts'
import type { Clock } from '../platform/clock.ts'
import { hostDiskCheck } from './host-limits.ts'
import { respondOnce, type ResponseDeps } from '../http/idempotency.ts'
import { waitSeconds, writeContext, NoQuery } from '../http/parameters.ts'
import { OwnRateBody } from './tenant-change-body.ts'
import { etagOf, KeysBody, OperationBody, TenantBody, toOperationBody, toTenantBody } from './tenant-body.ts'
import { waitUntilSettled, type WaitDeps } from './wait.ts'

const Body = Type.Object(
  {
    name: Type.String({ description: 'DNS label of 3 to 63 characters' }),
    plan: Type.String({ description: 'Free, Pro or Enterprise' }),
    region: Type.String(),
    isolation: Type.Optional(
      Type.Enum(['schema-per-tenant', 'database-per-tenant', 'cluster-per-tenant'], {
        description: "Default: the plan's own model, or the strongest that the region supports",
      }),
    ),
    rate_limit: Type.Optional(
      Type.Union([...OwnRateBody], { description: "Rate of requests at each gateway. Default: the plan's" }),
    ),
  },
  { additionalProperties: false },
)

const Created = Type.Object({ ...TenantBody.properties, keys: KeysBody, operation: OperationBody })

/** Dependencies of the route that creates a tenant. */
export interface CreateTenantDeps extends ResponseDeps, WaitDeps, RoomDeps {
  regions: readonly RegionConfig[]
  plans: Pick<PlanStore, 'list'>
  /** Returns a region's engine; undefined if its parts are started by other means. */
  engineOf(region: string): Engine | undefined
  clock: Pick<Clock, 'timeout'>
  /** The current time. */
  now: () => Date
}

/** Adds `POST /v1/tenants` (specification, section 4.4). */
export function addCreateTenant(app: Api, deps: CreateTenantDeps): void {
  const checkDisk = hostDiskCheck(deps)
  app.post(
    '/v1/tenants',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Create a tenant',
        description:
          'Responds at once with the status `pending`; with `Prefer: wait=N`, when the tenant is ready or after N seconds. ' +
          'The keys and the database password are returned only once.',
        tags: ['tenants'],
        querystring: NoQuery,
        body: Body,
        response: { 201: Created },
      },
    },
    async (request, reply) => {
      const wait = waitSeconds(request)
      const context = writeContext(request)
      checkName(request.body.name)
      reply.status(201)
      return respondOnce(deps, context, reply, async (record) => {
        const { region, plan, isolation } = await chosenValues(deps, request.body)
        await checkDisk(region.id, isolation)
        await requireRoom(deps, region.id, { plan, isolation })
        const present = ({ tenant, operation, secrets }: TenantCreated) => ({
          ...toTenantBody(tenant, region, secrets.admin_password),
          keys: {
            publishable_key: secrets.publishable_key,
            secret_key: secrets.secret_key,
            jwt_secret: secrets.jwt_secret,
          },
          operation: toOperationBody(operation),
        })
        const { name, rate_limit: rateLimit } = request.body
        const own = rateLimit === undefined ? {} : { rateLimit }
        const wanted = {
          id: `t_${randomBytes(10).toString('hex')}`,
          name,
          plan,
          region: region.id,
          isolation,
          ...own,
          secrets: newSecrets(),
        }
        const made = await record((write) => deps.tenants.create(wanted, write), present)
        const settled = await waitUntilSettled(deps, made, wait, request)
        reply.headers({ location: `/v1/tenants/${settled.tenant.id}`, etag: etagOf(settled.tenant) })
        return present({ ...settled, secrets: made.secrets })
      })
    },
  )
}

/**
 * Looks up the region, the plan and the isolation. @throws ControlError UNKNOWN_REGION, UNKNOWN_PLAN,
 * UNSUPPORTED_ISOLATION
 */
async function chosenValues(deps: Pick<CreateTenantDeps, 'regions' | 'plans'>, body: Static<typeof Body>) {
  const region = regionNamed(deps, body.region)
  const plans = await deps.plans.list()
  const plan = plans.find((candidate) => candidate.id === body.plan)
  if (plan === undefined)
    throw new ControlError(
      'UNKNOWN_PLAN',
      `Unknown plan "${body.plan.slice(0, 100)}". Allowed: ${plans.map(({ id }) => id).join(', ')}.`,
    )
  return { region, plan: plan.id, isolation: chooseIsolation(body.isolation, plan.isolation, region) }
}
