// The programs of a region on several hosts as requests find them: a gateway on each host, shared runtimes, and tenants' own runtimes,
// each of which reaches its Postgres or not.
import { componentAlias } from '#control-plane/stacks/stack-for.ts'
import { networkName } from '#control-plane/stacks/object-names.ts'
import type { RegionConfig } from '#control-plane/regions/region-config.ts'
import type { Chance } from '../chance.ts'
import type { ControlDatabase, Published } from '../control-database.ts'
import { clusterOf, type Volume } from '../docker-objects.ts'
import type { Scheduler } from '../scheduler.ts'
import { createWatches } from '../watches.ts'
import { sharedRouter, type Located, type Machines } from './hosts.ts'
import type { Patroni } from './patroni.ts'
import type { ClusterPrograms } from './programs.ts'

interface HostsPartsOptions {
  machines: Machines
  patroni: Patroni
  programs: ClusterPrograms
  database: ControlDatabase
  scheduler: Scheduler
  chance: Chance
  config: Pick<RegionConfig, 'gateway_internal_urls' | 'runtime_urls' | 'hostByUrl'>
  regionStack: string
  watchFaults: () => number
}

export type HostsParts = ReturnType<typeof createHostsParts>

export function createHostsParts(options: HostsPartsOptions) {
  const { machines, patroni, programs, database, scheduler, chance, config, regionStack, watchFaults } = options
  const receivedBy = createWatches({
    dockers: machines.all.map(({ docker }) => docker),
    database,
    scheduler,
    chance,
    isWatcher: ({ labels }) => /^(?:gateway|runtime)/.test(labels?.service ?? ''),
    watchFaults,
  })
  /** Returns the container at a URL. @throws Error when it does not respond to control planes */
  const at = (url: string): Located => {
    const number = config.runtime_urls.indexOf(url)
    const id = config.hostByUrl?.get(url) ?? ''
    const service = number === -1 ? `gateway-${id}` : `runtime-${number}`
    const found = machines
      .responding(regionStack)
      .find(({ host, container }) => host.id === id && container.labels?.service === service)
    const isReached = found?.host.docker.isReachable() === true
    if (!isReached || !machines.isReachedOn(found.container, networkName(regionStack, 'net')))
      throw new Error(`${service} does not respond`)
    return found
  }

  /** Returns the runtime that a gateway forwards to, and the volume with the tenant's home. @throws Error */
  const dedicated = (gateway: Located, tenantId: string): { runtime: Located; volume: Volume | undefined } => {
    const network = networkName(tenantId, 'net')
    const own = machines.responding(tenantId)
    const isNear = (one: Located) => (other: Located) => machines.reaches(one, other, network)
    const runtime = own
      .filter(({ container }) => container.labels?.service?.startsWith('runtime'))
      .find(isNear(gateway))
    if (runtime === undefined) throw new Error('the runtime does not respond')
    const isSingle = database.tenants.get(tenantId)?.isolation === 'database-per-tenant'
    if (!isSingle) {
      const routers = own.filter(({ container }) => container.labels?.service?.startsWith('router-'))
      const isReached = routers.some((one) => isNear(runtime)(one) && programs.isReady(one.host, one.container))
      return { runtime, volume: isReached ? patroni.primaryOf(tenantId)?.volume : undefined }
    }
    const postgres = own
      .filter(({ host, container }) =>
        container.slots.get(network)?.aliases.includes(componentAlias(tenantId, 'postgres', host.id)),
      )
      .find(isNear(runtime))
    return { runtime, volume: postgres?.host.docker.volumes.get(clusterOf(postgres.container) ?? '') }
  }

  const shared = (runtime: Located): { runtime: Located; volume: Volume | undefined } => {
    const router = sharedRouter(machines, regionStack, programs.isReady, runtime)
    return { runtime, volume: router === undefined ? undefined : patroni.primaryOf(regionStack)?.volume }
  }

  const health = (url: string, tenantId: string): { generation: number; isWell: boolean } | undefined => {
    const found = at(url)
    const { runtime, volume } = config.runtime_urls.includes(url) ? shared(found) : dedicated(found, tenantId)
    const received = receivedBy(runtime.container)?.get(tenantId)
    if (received?.hasManifest !== true) return undefined
    return { generation: received.generation, isWell: volume?.homes.get(tenantId)?.isWhole === true }
  }

  return {
    health,
    isWell(url: string, tenantId: string): boolean {
      try {
        return health(url, tenantId)?.isWell === true
      } catch {
        return false
      }
    },
    routes(url: string): ReadonlyMap<string, Published> | undefined {
      try {
        return receivedBy(at(url).container)
      } catch {
        return undefined
      }
    },
  }
}
