// A tenant's health where its requests are served: the database responds to its own login, the service's tables are
// complete, and each module is healthy.
import {
  internalPaths,
  type ComponentHealth,
  type HomeStructure,
  type TenantHealth,
  type TenantStorageUsage,
} from '@tenantry/contract'
import type { FastifyInstance } from 'fastify'
import { RoundTripError } from '../database/round-trip-error.ts'
import { RuntimeError } from '../errors.ts'
import type { RuntimeModule } from '../tenancy/runtime-module.ts'
import type { Tenant } from '../tenancy/tenant.ts'

interface TenantHealthOptions {
  modules: readonly RuntimeModule[]
  tenantOf: (tenantId: string) => Tenant | undefined
  now: () => Date
}

export function addTenantHealth(app: FastifyInstance, { modules, tenantOf, now }: TenantHealthOptions): void {
  const servedTenant = (tenantId: string): Tenant => {
    const tenant = tenantOf(tenantId)
    if (tenant === undefined) throw new RuntimeError('NOT_FOUND', 'This runtime does not serve the tenant.')
    return tenant
  }

  const inProgress = new WeakMap<Tenant, Promise<TenantHealth>>()
  /** Checks a tenant, or waits for the check in progress: callers repeat a call whose response takes long. */
  const fullHealth = (tenant: Tenant): Promise<TenantHealth> => {
    const known = inProgress.get(tenant)
    if (known !== undefined) return known
    const health = healthOf(tenant, 'checked').finally(() => inProgress.delete(tenant))
    inProgress.set(tenant, health)
    return health
  }

  const healthOf = async (tenant: Tenant, structure: HomeStructure): Promise<TenantHealth> => {
    const signal = AbortSignal.timeout(5_000)
    // The database is checked first, so that the modules find its connection idle.
    const database = await databaseHealth(tenant, structure, now)
    const others = await Promise.all(modules.map((module) => module.health(tenant, signal)))
    const of = (name: RuntimeModule['name']): ComponentHealth =>
      others[modules.findIndex((module) => module.name === name)] ?? {
        status: 'unknown',
        observed_at: now().toISOString(),
      }
    const components = { database, storage: of('storage'), functions: of('functions') }
    const status = [database, ...others].every((component) => component.status === 'healthy') ? 'healthy' : 'unhealthy'
    return { tenant_id: tenant.id, generation: tenant.generation, status, components }
  }

  app.get('/health', { config: { access: 'public' } }, async (request, reply) => {
    const health = await fullHealth(request.tenant)
    return reply
      .status(health.status === 'healthy' ? 200 : 503)
      .send({ status: health.status, components: health.components })
  })
  app.get<{ Params: { id: string }; Querystring: { structure?: HomeStructure } }>(
    internalPaths.tenantHealth(':id'),
    { config: { access: 'internal' } },
    async ({ params, query }) => {
      const tenant = servedTenant(params.id)
      return query.structure === 'trusted' ? healthOf(tenant, query.structure) : fullHealth(tenant)
    },
  )
  app.get<{ Params: { id: string } }>(
    internalPaths.tenantUsage(':id'),
    { config: { access: 'internal' } },
    async (request) => {
      const tenant = servedTenant(request.params.id)
      const parts = await Promise.all(modules.map((module) => module.usage(tenant)))
      const none: TenantStorageUsage = {
        tenant_id: tenant.id,
        file_bytes: 0,
        file_count: 0,
        document_bytes: 0,
        function_invocations: 0,
      }
      return parts.reduce<TenantStorageUsage>((sum, part) => ({ ...sum, ...part }), none)
    },
  )
  app.delete<{ Params: { id: string } }>(
    internalPaths.tenantData(':id'),
    { config: { access: 'internal' } },
    async (request) => {
      if (tenantOf(request.params.id) !== undefined)
        throw new RuntimeError('CONFLICT', 'This runtime still serves the tenant.')
      await Promise.all(modules.map((module) => module.removeData(request.params.id, AbortSignal.timeout(50_000))))
      return { removed: true }
    },
  )
  app.get(internalPaths.live, { config: { access: 'live' } }, () => ({ status: 'live' }))
}

/** The time for which a complete home is not checked again, because that takes longer than all other checks. */
const completeMs = 5_000
const completeUntil = new WeakMap<Tenant, number>()

async function databaseHealth(tenant: Tenant, structure: HomeStructure, now: () => Date): Promise<ComponentHealth> {
  const unhealthy = (message: string): ComponentHealth => ({
    status: 'unhealthy',
    observed_at: now().toISOString(),
    message,
  })
  try {
    const isKnown = structure === 'trusted' || (completeUntil.get(tenant) ?? 0) > now().getTime()
    const { rows } = await tenant.database.query(
      { role: 'service', reason: 'health' },
      isKnown
        ? 'select 1 as violation from schemas where false'
        : `select left(violation, ${maxMessageLength}) as violation from home_problems() as violation limit ${maxViolations}`,
    )
    if (!isKnown && rows.length === 0) completeUntil.set(tenant, now().getTime() + completeMs)
    if (rows.length === 0) return { status: 'healthy', observed_at: now().toISOString() }
    return unhealthy(damage(rows.map(({ violation }) => String(violation))))
  } catch (error) {
    return unhealthy(
      isUndefined(error) ? damage(['the function "home_problems" is missing']) : 'The database does not respond.',
    )
  }
}

const maxMessageLength = 500
/** Maximum number of violations that are read: a tenant may have caused many. */
const maxViolations = 20

/** Describes the damage, up to the maximum length. The control plane recognises the beginning of the message. */
function damage(errors: readonly string[]): string {
  const message = `the home is damaged: ${errors.join('; ')}`
  return message.length <= maxMessageLength ? message : `${message.slice(0, maxMessageLength - 1)}…`
}

/** Whether the function that finds damage, or a table that it reads, is missing. */
function isUndefined(error: unknown): boolean {
  return error instanceof RoundTripError && (error.sqlstate === '42883' || error.sqlstate === '42P01')
}
