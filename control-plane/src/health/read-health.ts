// Asks a tenant's runtime for its health; what can't be seen is `unknown`, never `healthy`.
import type { TenantHealth } from '@tenantry/contract'
import type { RegionConfig } from '../regions/region-config.ts'
import type { RegionProbe } from '../reconcile/region-probe.ts'
import type { HealthReader } from './health-reader.ts'

export function createHealthReader(regions: readonly RegionConfig[], probe: RegionProbe, now: () => Date): HealthReader {
  return {
    async read(tenant) {
      const runtime = regions.find(({ id }) => id === tenant.region)?.runtime_urls[0]
      const seen =
        runtime === undefined ? undefined : await probe.tenantHealth(runtime, tenant.id, AbortSignal.timeout(2_000)).catch(() => undefined)
      if (seen !== undefined) return seen
      const component = { status: 'unknown' as const, observed_at: now().toISOString(), message: 'the runtime does not serve the tenant now' }
      const health: TenantHealth = {
        tenant_id: tenant.id,
        generation: tenant.generation,
        status: 'unknown',
        components: { database: component, storage: component, functions: component },
      }
      return health
    },
  }
}
