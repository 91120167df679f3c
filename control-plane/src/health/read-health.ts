// Reads a tenant's health from its runtime and engine. What can't be observed is `unknown`, never `healthy`.
import type { TenantHealth } from '@tenantry/contract'
import { toMemberBody } from '../clusters/index.ts'
import { hasCluster, type RegionProbe } from '../reconcile/index.ts'
import { componentServices, isContainerName } from '../stacks/index.ts'
import type { Tenant } from '../tenants/index.ts'
import { callEngine } from '../engines/index.ts'
import type { ServiceHealth, Health } from './health.ts'
import { serviceHealth, unseenService, worst } from './service-health.ts'
import { statusSourceOf, type StatusDeps, type TenantStatusSource } from './tenant-status-source.ts'

interface HealthReaderDeps extends StatusDeps {
  probe: Pick<RegionProbe, 'tenantHealth'>
}

const runtimeMilliseconds = 2_000

/** Reads the health of tenants. */
export type HealthReader = ReturnType<typeof createHealthReader>

/**
 * Creates the reader of a tenant's health: the report of its runtime and, for a tenant with services of its own, the
 * state of their containers.
 */
export function createHealthReader(deps: HealthReaderDeps) {
  return {
    /** Reads a tenant's health. A component that does not respond is `unknown`, and not an error. */
    async read(tenant: Tenant): Promise<Health> {
      const statusSource = await statusSourceOf(deps, tenant)
      const [seen, services, members] = await Promise.all([
        runtimeHealth(deps, tenant, statusSource),
        servicesHealth(deps, statusSource),
        clusterMembers(deps, statusSource),
      ])
      const components = { ...seen.components, ...services }
      const status = worst(Object.values(components).map(({ status }) => status))
      return { ...seen, status, components, ...(members === undefined ? {} : { members }) }
    },
  }
}

function isStopped({ desired }: Pick<Tenant, 'desired'>): boolean {
  return desired !== 'active'
}

/** Returns the health that the first runtime reports. All runtimes have reported a ready tenant as healthy. */
async function runtimeHealth(
  { probe, clock }: HealthReaderDeps,
  tenant: Tenant,
  statusSource: TenantStatusSource | undefined,
): Promise<TenantHealth> {
  const isServed =
    statusSource !== undefined && !(statusSource.engine !== undefined && isStopped(statusSource.snapshot))
  const urls = isServed ? statusSource.region.runtimeUrls(statusSource.snapshot) : []
  const signal = clock.timeout(runtimeMilliseconds)
  const responses = urls.map(async (url) => {
    const health = await probe.tenantHealth(url, tenant.id, signal)
    if (health === undefined) throw new Error('The runtime does not know the tenant.')
    return health
  })
  return Promise.any(responses).catch(() => unseenRuntime(tenant, clock.now()))
}

function unseenRuntime({ id, generation }: Tenant, at: Date): TenantHealth {
  const component = {
    status: 'unknown' as const,
    observed_at: at.toISOString(),
    message: 'the runtime does not serve the tenant at present',
  }
  return {
    tenant_id: id,
    generation,
    status: 'unknown',
    components: { database: component, storage: component, functions: component },
  }
}

async function servicesHealth(
  { clock }: HealthReaderDeps,
  statusSource: TenantStatusSource | undefined,
): Promise<{ postgres?: ServiceHealth; runtime?: ServiceHealth }> {
  const engine = statusSource?.engine
  if (statusSource === undefined || engine === undefined) return {}
  const host = await callEngine(clock, (signal) => engine.observe(statusSource.snapshot.id, signal)).catch(
    () => undefined,
  )
  const health = (service: string) => {
    if (host === undefined) return unseenService(clock.now())
    const [newest] = host.containers
      .filter(
        ({ name, labels }) => labels.service === service && isContainerName(name, statusSource.snapshot.id, service),
      )
      .sort((a, b) => ((a.startedAt ?? '') < (b.startedAt ?? '') ? 1 : -1))
    return serviceHealth(newest, !isStopped(statusSource.snapshot), clock.now())
  }
  const { postgres, runtime } = componentServices(statusSource.snapshot.isolation)
  const component = ([first, ...others]: readonly [string, ...string[]]) =>
    others.map(health).reduce(worseService, health(first))
  return { postgres: component(postgres), runtime: component(runtime) }
}

/** Returns the worse of the states of two services of a component. */
function worseService(one: ServiceHealth, other: ServiceHealth): ServiceHealth {
  return worst([one.status, other.status]) === one.status ? one : other
}

/** Reads the members of a tenant's cluster; undefined for a tenant without a cluster, empty if none responds. */
async function clusterMembers(
  { clock }: HealthReaderDeps,
  statusSource: TenantStatusSource | undefined,
): Promise<Health['members']> {
  if (statusSource === undefined || !hasCluster(statusSource.snapshot)) return undefined
  const { region, snapshot } = statusSource
  const state = await callEngine(clock, (signal) => region.cluster(snapshot, signal)).catch(() => undefined)
  return (state?.members ?? []).map(toMemberBody)
}
