// The programs in the region's containers: a gateway and runtimes that receive the published state, each with its own delay.
// After a restart they know nothing until they have read it again.
import type { Route, TenantHealth } from '@tenantry/contract'
import type { RegionProbe } from '#control-plane/reconcile/region-probe.ts'
import { componentAlias } from '#control-plane/stacks/stack-for.ts'
import { networkName } from '#control-plane/stacks/object-names.ts'
import type { Chance } from './chance.ts'
import type { ControlDatabase, Published } from './control-database.ts'
import { beginning, type ControlPlane } from './control-plane.ts'
import type { Docker } from './docker.ts'
import { clusterOf, type Container } from './docker-objects.ts'
import type { Invariants } from './invariants.ts'
import type { Scheduler } from './scheduler.ts'

export interface RegionPartsOptions {
  docker: Docker
  database: ControlDatabase
  scheduler: Scheduler
  chance: Chance
  regionStack: string
  runtimeUrls: readonly string[]
  gatewayContainer: string | undefined
  /** Probability that a watch breaks and delivers a change late. */
  watchFaults: () => number
}

export type RegionParts = ReturnType<typeof createRegionParts>

export function createRegionParts({
  docker,
  database,
  scheduler,
  chance,
  regionStack,
  runtimeUrls,
  gatewayContainer,
  watchFaults,
}: RegionPartsOptions) {
  /** State that each run of a container has received, by tenant ID. */
  const known = new Map<string, Map<string, Published>>()
  const keyOf = ({ id, run }: Container) => `${id} ${run}`

  const partOf = (stack: string, service: string) =>
    [...docker.containers.values()].find(
      (one) => one.labels?.stack === stack && one.labels.service === service && docker.responds(one),
    )
  const gateway = () => {
    const found =
      gatewayContainer === undefined ? partOf(regionStack, 'gateway') : docker.containers.get(gatewayContainer)
    return found !== undefined && docker.responds(found) ? found : undefined
  }
  const isWatcher = ({ labels, name }: Container) =>
    name === gatewayContainer || labels?.service === 'gateway' || labels?.service?.startsWith('runtime') === true

  const deliver = (container: Container, tenantId: string) => {
    const received = known.get(keyOf(container))
    const now = database.published(tenantId)
    if (now === undefined) received?.delete(tenantId)
    else received?.set(tenantId, now)
  }
  docker.starts.add((container) => {
    if (!isWatcher(container)) return
    const { run } = container
    const read = () => {
      if (container.run !== run) return
      known.set(keyOf(container), new Map())
      for (const tenantId of database.tenants.keys()) deliver(container, tenantId)
    }
    scheduler.after(chance.between(5, 300), read)
  })
  database.listen(({ kind, subject: tenantId }) => {
    if (kind !== 'published') return
    for (const container of docker.containers.values()) {
      if (!known.has(keyOf(container)) || !docker.isRunning(container)) continue
      scheduler.after(chance.happens(watchFaults()) ? chance.between(500, 5_000) : chance.between(1, 60), () =>
        deliver(container, tenantId),
      )
    }
  })

  const isOn = (container: Container | undefined, network: string, alias: string | undefined) => {
    const location = container?.slots.get(network)
    return (
      location !== undefined &&
      location.networkId === docker.networks.get(network)?.id &&
      (alias === undefined || location.aliases.includes(alias))
    )
  }

  /** Returns the tenant's own containers that respond and reach each other. */
  const dedicated = (tenantId: string): { runtime: Container | undefined; postgres: Container | undefined } => {
    const network = networkName(tenantId, 'net')
    const on = (service: 'runtime' | 'postgres') =>
      [...docker.containers.values()].find(
        (one) =>
          one.labels?.stack === tenantId &&
          one.labels.service === service &&
          docker.responds(one) &&
          isOn(one, network, componentAlias(tenantId, service)),
      )
    return isOn(gateway(), network, undefined)
      ? { runtime: on('runtime'), postgres: on('postgres') }
      : { runtime: undefined, postgres: undefined }
  }

  /** Returns the health of a tenant; undefined when the runtime does not know it. @throws Error when no container responds */
  const health = (url: string, tenantId: string): { generation: number; isWell: boolean } | undefined => {
    const row = database.tenants.get(tenantId)
    const at = runtimeUrls.indexOf(url)
    const shared = at === -1 ? undefined : partOf(regionStack, `runtime-${at}`)
    if (at === -1 && gateway() === undefined) throw new Error('the gateway does not respond')
    const { runtime, postgres } =
      at === -1 ? dedicated(tenantId) : { runtime: shared, postgres: partOf(regionStack, 'postgres') }
    if (runtime === undefined) throw new Error('the runtime does not respond')
    const received = known.get(keyOf(runtime))?.get(tenantId)
    if (received?.hasManifest !== true) return undefined
    const cluster = postgres === undefined ? undefined : docker.volumes.get(clusterOf(postgres) ?? '')
    return {
      generation: received.generation,
      isWell: row !== undefined && cluster?.homes.get(tenantId)?.isWhole === true,
    }
  }

  return {
    gateway,
    health,
    isWell: (url: string, tenantId: string): boolean => {
      try {
        return health(url, tenantId)?.isWell === true
      } catch {
        return false
      }
    },
    /** Returns the routes that the gateway has received; undefined before it has received any. */
    routes(): ReadonlyMap<string, Published> | undefined {
      const found = gateway()
      return found === undefined ? undefined : known.get(keyOf(found))
    },
  }
}

const timeout = 2_000

export function createSimulatedProbe(
  parts: RegionParts,
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
    async route(_url, tenantId, signal): Promise<Route | undefined> {
      const route = await request(`route of ${tenantId}`, signal, () => {
        const routes = parts.routes()
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
