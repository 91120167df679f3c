// PATCH and DELETE /v1/tenants/{id} (specification, section 4.4).
import { Type } from 'typebox'
import { ControlError } from '../platform/errors.ts'
import { callEngine, type Engine } from '../engines/index.ts'
import { checkPlanFits, type StoredReader } from './plan-fit.ts'
import type { Tenant } from './tenant.ts'
import type { SizeChange, TenantChange, TenantWrite } from './tenant-write.ts'
import type { Api } from '../http/api.ts'
import { engineOf, requireBackups } from './dedicated.ts'
import type { RegionConfig } from '../regions/index.ts'
import type { PlanStore } from '../plans/index.ts'
import type { Clock } from '../platform/clock.ts'
import { chooseIsolation } from './choose-isolation.ts'
import { requireRoom, type RoomDeps } from './require-room.ts'
import { checkHostLimits, hostDiskCheck } from './host-limits.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import type { WriteDeps } from '../http/idempotency.ts'
import { foundTenant, regionNamed, regionOf } from './lookup.ts'
import { ifMatch, waitSeconds, writeContext, NoQuery } from '../http/parameters.ts'
import { etagOf } from './tenant-body.ts'
import { checkChange, TenantChangeBody, toChange } from './tenant-change-body.ts'
import { waitUntilSettled, type WaitDeps } from './wait.ts'
import { ChangedTenant, toChangedTenant } from './written-tenant.ts'

const Id = Type.Object({ id: Type.String() })

/** Dependencies of the routes that change and delete a tenant. */
export interface ChangeTenantDeps extends WriteDeps, WaitDeps, RoomDeps {
  regions: readonly RegionConfig[]
  plans: Pick<PlanStore, 'list'>
  stored: StoredReader
  /** Returns a region's engine; undefined if its parts are started by other means. */
  engineOf(region: string): Engine | undefined
  /** Whether the hosts of a tenant's region have memory that is not reserved, for the sizes that the tenant gets. */
  hasRoomToGrow(tenantId: string, change: SizeChange): Promise<boolean>
  clock: Pick<Clock, 'timeout'>
  /** The current time. */
  now: () => Date
  deleteGraceSeconds: number
  /** The storage of backups and archives; undefined without a backup target. */
  backups: { readonly storage: object | undefined }
}

/** Fields that need backups of the tenant, as subjects of a message. */
const backupFields = [
  ['backup_schedule', 'A schedule of backups'],
  ['archive_days', 'An archive'],
] as const

/** Adds the routes that change and delete a tenant (specification, section 4.4). */
export function addChangeTenant(app: Api, deps: ChangeTenantDeps): void {
  const present = (write: TenantWrite) => toChangedTenant(deps, write)
  const checkDisk = hostDiskCheck(deps)

  /** Checks what plans and the host allow, and returns the write. @throws ControlError */
  async function checkedWrite(
    body: TenantChangeBody,
    tenant: Tenant,
    expectedGeneration: number | undefined,
  ): Promise<(write: RecordedWrite) => Promise<TenantWrite>> {
    if (body.isolation === undefined && body.region === undefined) {
      const change = toChange(body)
      await checkLimits(deps, tenant, change, expectedGeneration)
      return (write) => deps.tenants.update(tenant.id, change, expectedGeneration, write)
    }
    const region = body.region === undefined ? regionOf(deps, tenant) : regionNamed(deps, body.region)
    const isolation = chooseIsolation(body.isolation ?? tenant.isolation, tenant.planIsolation, region)
    if (region.id !== tenant.region) {
      const present = regionOf(deps, tenant)
      rejectSeveralHosts(present, region)
      requireSameGateway(present, region)
    }
    if (tenant.backupSchedule !== undefined) requireBackups({ isolation }, region, 'A schedule of backups')
    await checkDisk(region.id, isolation)
    const { plan, resources: sizes } = tenant
    if (isolation !== tenant.isolation) await requireRoom(deps, region.id, { plan, sizes, isolation, takesWarm: false })
    const relocation = { region: body.region, isolation: body.isolation && isolation }
    return (write) => deps.tenants.relocate(tenant.id, relocation, expectedGeneration, write)
  }

  app.patch(
    '/v1/tenants/:id',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Change a tenant',
        description: 'With `If-Match`, only if that ETag is still current.',
        tags: ['tenants'],
        params: Id,
        querystring: NoQuery,
        body: TenantChangeBody,
        response: { 200: ChangedTenant },
      },
    },
    async (request, reply) => {
      const wait = waitSeconds(request)
      const expectedGeneration = ifMatch(request)
      const tenant = await foundTenant(deps, request.params.id)
      checkChange(request.body, tenant)
      if (request.body.archive_days != null && deps.backups.storage === undefined)
        throw new ControlError(
          'BACKUPS_OFF',
          'Field "archive_days" requires a backup target (TENANTRY_BACKUPS, TENANTRY_BACKUP_TARGETS_FILE).',
        )
      for (const [field, what] of backupFields)
        if (request.body[field] != null) requireBackups(tenant, regionOf(deps, tenant), what)
      const write = await checkedWrite(request.body, tenant, expectedGeneration)
      const { actor } = writeContext(request)
      const updated = await deps.record(actor, write)
      const settled = await waitUntilSettled(deps, updated, wait, request)
      return reply.header('etag', etagOf(settled.tenant)).send(present(settled))
    },
  )

  app.delete(
    '/v1/tenants/:id',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Delete a tenant',
        description:
          'Its service ends at once. Its data is destroyed after the grace period, or at once with `?purge=true`.',
        tags: ['tenants'],
        params: Id,
        querystring: Type.Object(
          { purge: Type.Optional(Type.Enum(['true', 'false'])) },
          { additionalProperties: false },
        ),
        response: { 202: ChangedTenant },
      },
    },
    async (request, reply) => {
      const wait = waitSeconds(request)
      const expectedGeneration = ifMatch(request)
      const { id } = await foundTenant(deps, request.params.id)
      const grace = request.query.purge === 'true' ? 0 : deps.deleteGraceSeconds
      const purgeAfter = new Date(deps.now().getTime() + grace * 1000)
      const { actor } = writeContext(request)
      // With a grace period the operation ends only after it, so a client can wait until the tenant is no longer served.
      const isUnserved = (tenant: Tenant) => grace > 0 && tenant.observedGeneration >= tenant.generation
      const deleted = await deps.record(actor, (write) =>
        deps.tenants.requestDelete(id, purgeAfter, expectedGeneration, write),
      )
      const settled = await waitUntilSettled(deps, deleted, wait, request, isUnserved)
      return reply.status(202).send(present(settled))
    },
  )
}

/**
 * Checks a change against what plans and the host allow.
 * @throws ControlError UNKNOWN_PLAN, PLAN_TOO_SMALL, STORED_UNKNOWN, LIMITS_BEYOND_HOST, REGION_FULL, and as `update` does;
 * EngineError if the host cannot be read
 */
async function checkLimits(
  deps: ChangeTenantDeps,
  tenant: Tenant,
  { plan, resources }: TenantChange,
  expectedGeneration: number | undefined,
): Promise<void> {
  if (plan !== undefined) {
    const plans = await deps.plans.list()
    const newPlan = plans.find(({ id }) => id === plan)
    if (newPlan === undefined)
      throw new ControlError(
        'UNKNOWN_PLAN',
        `Unknown plan "${plan.slice(0, 100)}". Allowed: ${plans.map(({ id }) => id).join(', ')}.`,
      )
    // A runtime that is starting or stopping cannot report its stored bytes.
    await deps.tenants.rejectBusy(tenant.id, expectedGeneration)
    await checkPlanFits(
      deps.stored,
      tenant,
      plans.find(({ id }) => id === tenant.plan),
      newPlan,
    )
  }
  if (resources != null)
    checkHostLimits(resources, await callEngine(deps.clock, (signal) => engineOf(deps, tenant).info(signal)))
  if (plan === undefined && resources === undefined) return
  if (plan === undefined) await deps.tenants.rejectBusy(tenant.id, expectedGeneration)
  const change = { ...(plan === undefined ? {} : { plan }), ...(resources === undefined ? {} : { resources }) }
  if (await deps.hasRoomToGrow(tenant.id, change)) return
  throw new ControlError(
    'REGION_FULL',
    tenant.isolation === 'cluster-per-tenant'
      ? `The hosts of the region "${tenant.region}" do not have enough memory that is not reserved, for services with these sizes.`
      : "The host of the tenant's services does not have enough memory that is not reserved, for services with these sizes.",
  )
}

/** Rejects a move to another region if one of both has several hosts. @throws ControlError UNSUPPORTED_REGION */
function rejectSeveralHosts(...regions: readonly RegionConfig[]): void {
  const found = regions.find(({ engine }) => engine === 'swarm')
  if (found === undefined) return
  throw new ControlError(
    'UNSUPPORTED_REGION',
    `The region "${found.id}" has several hosts. Tenants are moved there between shared databases and services of their own, ` +
      'in the same region.',
  )
}

/** Rejects a region in which the tenant would have another URL. @throws ControlError UNSUPPORTED_REGION */
function requireSameGateway(from: RegionConfig, to: RegionConfig): void {
  if (from.domain === to.domain && from.gateway_url === to.gateway_url) return
  throw new ControlError(
    'UNSUPPORTED_REGION',
    `The URL of the tenant would change: the region "${to.id}" has another gateway than "${from.id}".`,
  )
}
