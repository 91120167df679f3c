// The requests of one control plane to the programs of a region, each of which takes time and may fail.
import type { Route, TenantHealth } from '@tenantry/contract'
import type { RegionProbe } from '#control-plane/reconcile/region-probe.ts'
import type { Published } from './control-database.ts'
import { beginning, type ControlPlane } from './control-plane.ts'
import type { Invariants } from './invariants.ts'
import type { Scheduler } from './scheduler.ts'

/** The programs of a region, as requests find them. */
export interface ProbedParts {
  /** Returns the health of a tenant; undefined when the runtime does not know it. @throws Error when no container responds */
  health(url: string, tenantId: string): { generation: number; isWell: boolean } | undefined
  /** Returns the routes that a gateway has received; undefined if it does not respond, or has received none yet. */
  routes(url: string): ReadonlyMap<string, Published> | undefined
}

const timeout = 2_000

export function createSimulatedProbe(
  parts: ProbedParts,
  caller: ControlPlane,
  invariants: Invariants,
  scheduler: Scheduler,
): RegionProbe {
  const request = <T>(what: string, signal: AbortSignal, effect: () => T) =>
    caller.call(what, effect, { signal, timeout, takes: 6, failure: () => new Error('it did not respond') })
  const at = () => new Date(beginning + scheduler.now()).toISOString()

  return {
    async tenantHealth(url, tenantId, signal): Promise<TenantHealth | undefined> {
      const health = await request(`health of ${tenantId}`, signal, () => parts.health(url, tenantId))
      if (health === undefined) return undefined
      if (health.isWell) invariants.healthSeen(caller, tenantId, health.generation)
      const status = health.isWell ? 'healthy' : 'unhealthy'
      const component = { status, observed_at: at() } as const
      return {
        tenant_id: tenantId,
        generation: health.generation,
        status,
        components: { database: component, storage: component, functions: component },
      }
    },
    tenantUsage: async () => undefined,
    async route(url, tenantId, signal): Promise<Route | undefined> {
      const route = await request(`route of ${tenantId}`, signal, () => {
        const routes = parts.routes(url)
        if (routes === undefined) throw new Error('the gateway does not respond')
        return routes.get(tenantId)
      })
      return route === undefined
        ? undefined
        : {
            tenant_id: tenantId,
            name: tenantId,
            generation: route.generation,
            phase: route.phase,
            runtimes: [],
            dedicated: true,
          }
    },
    activity: async () => ({ since: at(), tenants: {} }),
    removeData: (_url, tenantId, signal) => request(`remove files of ${tenantId}`, signal, () => undefined),
  }
}
