// What tenants use, as an area of the runtime: the control plane reads their homes' books here.
import { internalPaths } from '@tenantry/contract'
import { RuntimeError } from '../errors.ts'
import type { Area } from '../tenancy/area.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { addUsageRoutes, type UsageRoutesDeps } from './usage-routes.ts'
import { createBooksReader, type BooksReaderDeps } from './read-books.ts'
import type { WitnessFile } from './witness-file.ts'

interface MeteringAreaOptions extends BooksReaderDeps, UsageRoutesDeps {
  now: () => Date
  tenantOf: (tenantId: string) => Tenant | undefined
  /** A home is read: each at least once an hour, unless its tenant is paused. */
  onRead: (tenant: Tenant) => void
  /** Keeps `runs` over restarts. */
  witnessFile: Pick<WitnessFile, 'load' | 'run'>
}

export function createMeteringArea(options: MeteringAreaOptions): Area {
  const { now, tenantOf, onRead } = options
  const books = createBooksReader(options)
  return {
    name: 'metering',
    async routes(app) {
      app.get<{ Params: { id: string }; Querystring: { hours?: string } }>(
        internalPaths.tenantBooks(':id'),
        { config: { access: 'internal' } },
        async (request) => {
          const tenant = tenantOf(request.params.id)
          if (tenant === undefined) throw new RuntimeError('NOT_FOUND', 'this runtime does not serve the tenant')
          const { hours = '0' } = request.query
          if (!/^\d{1,3}$/.test(hours))
            throw new RuntimeError('BAD_REQUEST', 'query parameter "hours" must be from 0 to 999')
          onRead(tenant)
          return books.read(tenant, Number(hours))
        },
      )
      addUsageRoutes(app, options)
    },
    start: () => options.witnessFile.load(),
    run: (signal) => options.witnessFile.run(signal),
    close: async () => undefined,
    health: async () => ({ status: 'healthy', observed_at: now().toISOString() }),
    usage: async () => ({}),
    forget(tenantId) {
      // What was seen of a tenant that has only changed, or is told of anew, is still true.
      if (tenantOf(tenantId) === undefined) options.runs.forget(tenantId)
      // It may be another home by now.
      books.forget(tenantId)
    },
    removeData: async () => undefined,
  }
}
