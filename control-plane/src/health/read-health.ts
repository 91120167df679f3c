// Reads a tenant's health from its runtime and engine. What can't be observed is `unknown`, never `healthy`.
import type { TenantHealth } from '@tenantry/contract'
import type { RegionProbe } from '../reconcile/index.ts'
import { isContainerName } from '../stacks/index.ts'
import type { Tenant } from '../tenants/index.ts'
import { callEngine } from '../engines/index.ts'
import type { HealthReader, ServiceHealth } from './health-reader.ts'
import { serviceHealth, unseenService, worst } from './service-health.ts'
import { statusSourceOf, type StatusDeps, type TenantStatusSource } from './tenant-status-source.ts'

interface HealthReaderDeps extends StatusDeps {
  probe: Pick<RegionProbe, 'tenantHealth'>
}

const runtimeMilliseconds = 2_000

/**
 * Creates the reader of a tenant's health: the report of its runtime and, for a tenant with services of its own, the
 * state of their containers.
 */
export function createHealthReader(deps: HealthReaderDeps): HealthReader {
  return {
    async read(tenant) {
      const statusSource = await statusSourceOf(deps, tenant)
      const [seen, services] = await Promise.all([
        runtimeHealth(deps, tenant, statusSource),
        servicesHealth(deps, statusSource),
      ])
      const components = { ...seen.components, ...services }
      return { ...seen, status: worst(Object.values(components).map(({ status }) => status)), components }
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
  const health = (service: 'postgres' | 'runtime') => {
    if (host === undefined) return unseenService(clock.now())
    const [newest] = host.containers
      .filter(
        ({ name, labels }) => labels.service === service && isContainerName(name, statusSource.snapshot.id, service),
      )
      .sort((a, b) => ((a.startedAt ?? '') < (b.startedAt ?? '') ? 1 : -1))
    return serviceHealth(newest, !isStopped(statusSource.snapshot), clock.now())
  }
  return { postgres: health('postgres'), runtime: health('runtime') }
}
