// The generated REST interface (specification, section 4.3) as an area of the runtime.
import { sql } from '../database/statement.ts'
import type { Area } from '../tenancy/area.ts'
import type { JsonBody } from './plan/plan-write.ts'
import { readConfirmed } from './registry/read-confirmed.ts'
import { Registry } from './registry/registry.ts'
import { addCollectionRoutes, type RestDeps } from './routes/collection-routes.ts'
import { addOpenApiRoute } from './routes/openapi-route.ts'
import { addRecordRoutes } from './routes/record-routes.ts'
import { keepBodiesAsText } from './routes/rest-request.ts'
import { addRoutineRoutes } from './routes/routine-routes.ts'

export interface RestAreaOptions {
  now: () => Date
  /** Other runtimes serve the same tenants, and may reload their schemas. */
  hasSiblings?: boolean
  /** `Prefer: tx=rollback` is heard: for development. */
  allowsRollback?: boolean
  onProblem?: (problem: Error) => void
}

/** A reload that another runtime has made takes effect here within so much time. */
const siblingsReloadMilliseconds = 500

export function createRestArea({ now, hasSiblings = false, allowsRollback = false, onProblem }: RestAreaOptions): Area {
  const registry = new Registry({ ...(hasSiblings ? { recheckMilliseconds: siblingsReloadMilliseconds } : {}), now: () => now().getTime(), ...(onProblem === undefined ? {} : { onProblem }) })
  const deps: RestDeps = { registry, allowsRollback }
  return {
    name: 'rest',
    async routes(app) {
      keepBodiesAsText(app)
      app.post<{ Body: JsonBody | undefined }>('/admin/reload-schemas', { config: { access: 'service' } }, async (request) => {
        return { success: true, ...(await registry.reload(request.tenant, readConfirmed(request.body?.value))) }
      })
      addOpenApiRoute(app, deps)
      addRoutineRoutes(app, deps)
      addCollectionRoutes(app, deps)
      addRecordRoutes(app, deps)
    },
    start: async () => undefined,
    run: async () => undefined,
    close: async () => undefined,
    health: async () => ({ status: 'healthy', observed_at: now().toISOString() }),
    async usage({ id, database }) {
      const [result] = await database.run({ role: 'service', reason: 'usage' }, sql(
        'select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint as bytes from pg_class c' +
          ' join applied_schemas a on a.name = c.relname where c.relnamespace = $1::regnamespace and c.relkind = $2',
        id, 'r',
      ))
      return { document_bytes: Number(result?.rows[0]?.['bytes'] ?? 0) }
    },
    forget: (tenantId) => registry.forget(tenantId),
    removeData: async (tenantId) => registry.forget(tenantId),
  }
}
