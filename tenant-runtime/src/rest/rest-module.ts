// The generated REST interface (specification, section 4.3) as a module of the runtime.
import type pg from 'pg'
import type { RuntimeModule } from '../tenancy/runtime-module.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { DocumentQuota } from './document-quota.ts'
import type { JsonBody } from './plan/plan-write.ts'
import { readConfirmed } from './registry/read-confirmed.ts'
import { Registry } from './registry/registry.ts'
import { addCollectionRoutes } from './routes/collection-routes.ts'
import { addOpenApiRoute } from './routes/openapi-route.ts'
import { addRecordRoutes } from './routes/record-routes.ts'
import { keepBodiesAsText, type RestDeps } from './routes/rest-request.ts'
import { addRoutineRoutes } from './routes/routine-routes.ts'

interface RestModuleOptions {
  now: () => Date
  /** Whether other runtimes serve the same tenants, and may reload their schemas. */
  hasSiblings?: boolean
  /** Whether `Prefer: tx=rollback` is allowed, for development. */
  allowsRollback?: boolean
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
  const deps: RestDeps = { registry, quota, allowsRollback }
  return {
    name: 'rest',
    documentBytes: (tenant) => quota.used(tenant),
    async routes(app) {
      keepBodiesAsText(app)
      app.post<{ Body: JsonBody | undefined }>(
        '/admin/reload-schemas',
        { config: { access: 'service' } },
        async (request) => {
          return { success: true, ...(await registry.reload(request.tenant, readConfirmed(request.body?.value))) }
        },
      )
      addOpenApiRoute(app, deps)
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
