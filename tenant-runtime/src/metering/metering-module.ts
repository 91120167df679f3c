// Tenants' usage as a module of the runtime: the control plane reads the counters of homes here.
import { internalPaths } from '@tenantry/contract'
import { RuntimeError } from '../errors.ts'
import type { RuntimeModule } from '../tenancy/runtime-module.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { addUsageRoutes, type UsageRoutesDeps } from './usage-routes.ts'
import { createCountersReader, type CountersReaderDeps } from './read-counters.ts'
import type { MessageMeter } from './message-meter.ts'
import type { StoredRuns } from './stored-runs.ts'

interface MeteringModuleOptions extends CountersReaderDeps, UsageRoutesDeps {
  now: () => Date
  tenantOf: (tenantId: string) => Tenant | undefined
  /** Called when a home is read, at least once an hour unless its tenant is paused. */
  onRead: (tenant: Tenant) => void
  runs: StoredRuns
  messages: MessageMeter
}

export function createMeteringModule(options: MeteringModuleOptions): RuntimeModule {
  const { now, tenantOf, onRead, messages } = options
  const counters = createCountersReader(options)
  return {
    name: 'metering',
    async routes(app) {
      app.get<{ Params: { id: string }; Querystring: { hours?: string } }>(
        internalPaths.tenantRecords(':id'),
        { config: { access: 'internal' } },
        async (request) => {
          const tenant = tenantOf(request.params.id)
          if (tenant === undefined) throw new RuntimeError('NOT_FOUND', 'This runtime does not serve the tenant.')
          const { hours = '0' } = request.query
          if (!/^\d{1,3}$/.test(hours))
            throw new RuntimeError('BAD_REQUEST', 'Query parameter "hours" must be from 0 to 999.')
          onRead(tenant)
          return counters.read(tenant, Number(hours))
        },
      )
      addUsageRoutes(app, options)
    },
    async start() {
      messages.load()
      await options.runs.load()
    },
    async run(signal) {
      await Promise.all([options.runs.run(signal), messages.run(signal)])
    },
    close: () => messages.close(),
    health: async () => ({ status: 'healthy', observed_at: now().toISOString() }),
    usage: async (tenant) => ({ realtime_messages: await messages.ofMonth(tenant) }),
    evict(tenantId) {
      // The observed usage of a tenant that has only changed remains valid.
      if (tenantOf(tenantId) === undefined) {
        options.runs.evict(tenantId)
        messages.evict(tenantId)
      }
      // The tenant may have another home now.
      counters.evict(tenantId)
    },
    removeData: async () => undefined,
  }
}
