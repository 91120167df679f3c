// The generated REST interface (specification, section 4.3) as a module of the runtime.
import type pg from 'pg'
import type { RuntimeModule } from '../tenancy/runtime-module.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { DocumentQuota } from './document-quota.ts'
import type { RequestBody } from './plan/request-body.ts'
import { readReload } from './registry/read-reload.ts'
import { Registry } from './registry/registry.ts'
import { addCollectionRoutes } from './routes/collection-routes.ts'
import { addOpenApiRoute } from './routes/openapi-route.ts'
import { addOptionsRoutes } from './routes/options-routes.ts'
import { addRecordRoutes } from './routes/record-routes.ts'
import { parseBodies } from './routes/request-bodies.ts'
import { addResponseSettings } from './routes/request-settings.ts'
import { addContentProfile, type RestDeps } from './routes/rest-request.ts'
import { addRejections } from './routes/rejections.ts'
import { addRoutineRoutes } from './routes/routine-routes.ts'
import { addServerTiming } from './routes/server-timing.ts'

interface RestModuleOptions {
  now: () => Date
  /** Whether other runtimes serve the same tenants, and may reload their schemas. */
  hasSiblings?: boolean
  /** Whether `Prefer: tx=rollback` is allowed, for development. */
  allowsRollback?: boolean
  /** Whether requests may have aggregates. */
  allowsAggregates?: boolean
  /** Whether responses have the header `Server-Timing`. */
  sendsTiming?: boolean
  /** Called within a reload, in its transaction, when the tables are complete. */
  onTables?: (client: pg.Client) => Promise<void>
  onError?: (error: Error) => void
}

interface RestModule extends RuntimeModule {
  /** Returns the bytes of the tenant's documents, as the quota counts them. */
  documentBytes: (tenant: Tenant) => Promise<number>
}

/** Milliseconds within which a reload of another runtime takes effect here. */
const siblingsReloadMilliseconds = 500

export function createRestModule({
  now,
  hasSiblings = false,
  allowsRollback = false,
  allowsAggregates = true,
  sendsTiming = false,
  onTables,
  onError,
}: RestModuleOptions): RestModule {
  const registry = new Registry({
    ...(hasSiblings ? { recheckMilliseconds: siblingsReloadMilliseconds } : {}),
    now: () => now().getTime(),
    ...(onTables === undefined ? {} : { onTables }),
    ...(onError === undefined ? {} : { onError }),
  })
  const quota = new DocumentQuota(() => now().getTime())
  const deps: RestDeps = { registry, quota, allowsRollback, allowsAggregates }
  return {
    name: 'rest',
    documentBytes: (tenant) => quota.used(tenant),
    async routes(app) {
      parseBodies(app)
      addResponseSettings(app)
      addContentProfile(app)
      if (sendsTiming) addServerTiming(app)
      await addRejections(app)
      app.post<{ Body: RequestBody | undefined }>(
        '/admin/reload-schemas',
        { config: { access: 'service' } },
        async (request) => {
          const { confirmed, settings } = readReload(request.body?.value)
          return { success: true, ...(await registry.reload(request.tenant, confirmed, settings)) }
        },
      )
      addOpenApiRoute(app, deps)
      addOptionsRoutes(app, deps)
      addRoutineRoutes(app, deps)
      addCollectionRoutes(app, deps)
      addRecordRoutes(app, deps)
    },
    start: async () => undefined,
    run: async () => undefined,
    close: async () => undefined,
    health: async () => ({ status: 'healthy', observed_at: now().toISOString() }),
    usage: async (tenant) => ({ document_bytes: await quota.used(tenant) }),
    evict(tenantId) {
      registry.evict(tenantId)
      quota.evict(tenantId)
    },
    async removeData(tenantId) {
      registry.evict(tenantId)
      quota.evict(tenantId)
    },
  }
}
