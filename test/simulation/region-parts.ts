// The programs in the region's containers: a gateway and runtimes that receive the published state, each with its own delay.
// After a restart they know nothing until they have read it again.
import { componentAlias } from '#control-plane/stacks/stack-for.ts'
import { networkName } from '#control-plane/stacks/object-names.ts'
import type { Chance } from './chance.ts'
import type { ControlDatabase, Published } from './control-database.ts'
import type { Docker } from './docker.ts'
import { clusterOf, type Container } from './docker-objects.ts'
import type { Scheduler } from './scheduler.ts'
import { createWatches } from './watches.ts'

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
  const partOf = (stack: string, service: string) =>
    [...docker.containers.values()].find(
      (one) => one.labels?.stack === stack && one.labels.service === service && docker.responds(one),
    )
  const gateway = () => {
    const found =
      gatewayContainer === undefined ? partOf(regionStack, 'gateway') : docker.containers.get(gatewayContainer)
    return found !== undefined && docker.responds(found) ? found : undefined
  }
  const receivedBy = createWatches({
    dockers: [docker],
    database,
    scheduler,
    chance,
    isWatcher: ({ labels, name }) =>
      name === gatewayContainer || labels?.service === 'gateway' || labels?.service?.startsWith('runtime') === true,
    watchFaults,
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
    const received = receivedBy(runtime)?.get(tenantId)
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
      return found === undefined ? undefined : receivedBy(found)
    },
  }
}
