// Functions (specification, section 1.3) as an area of the runtime.
import type { Area } from '../tenancy/area.ts'
import { addFunctionRoutes } from './deployment/function-routes.ts'
import { ExecutorPool, defaultPoolLimits, type PoolLimits } from './executor/pool.ts'
import { addInvokeRoutes } from './invocations/invoke-routes.ts'
import { ModuleCache } from './module/module-cache.ts'

export interface FunctionsAreaOptions {
  limits?: Partial<PoolLimits>
  now: () => Date
  onProblem: (problem: Error) => void
}

export function createFunctionsArea({ limits, now, onProblem }: FunctionsAreaOptions): Area {
  const pool = new ExecutorPool({ ...defaultPoolLimits, ...limits }, onProblem)
  const modules = new ModuleCache()
  return {
    name: 'functions',
    async routes(app) {
      await addFunctionRoutes(app, pool)
      await app.register(async (calls) => addInvokeRoutes(calls, { pool, modules, now: () => now().getTime(), onProblem }))
    },
    start: async () => undefined,
    run: async () => undefined,
    close: () => pool.close(),
    health: async () => ({ status: 'healthy', observed_at: now().toISOString() }),
    async usage(tenant) {
      const { rows } = await tenant.database.query({ role: 'service', reason: 'usage' }, "select count(*) as count from function_invocations where timestamp >= date_trunc('month', now(), 'UTC')")
      return { function_invocations: Number(rows[0]?.['count'] ?? 0) }
    },
    forget: (tenantId) => pool.forget(tenantId),
    removeData: async (tenantId) => pool.end(tenantId),
  }
}
