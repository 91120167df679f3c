// A region for the reconciler: its engine, its shared Postgres, its runtimes and gateways.
import { randomBytes } from 'node:crypto'
import type { InternalToken } from '@tenantry/contract'
import type { Clock } from '../platform/clock.ts'
import {
  awaitQuorum,
  copyAgain,
  etcdAccess,
  memberRolesSql,
  readCluster,
  readyRouters,
  switchOver,
} from '../clusters/index.ts'
import { type Engine, EngineError } from '../engines/index.ts'
import { createDedicatedHome, type HomeDatabases, type HomeMigration, scramVerifier } from '../homes/index.ts'
import {
  type ContainerSettings,
  etcdContainersOf,
  hostsOf,
  regionStackId,
  type RegionStackInput,
  type Isolation,
  serviceNames,
  memberPasswords,
  patroniPassword,
  subnetCount,
  subnetNumber,
  volumesOfModel,
} from '../stacks/index.ts'
import { type RegionConfig, sharedRuntimeUrls } from '../regions/index.ts'
import { reasonInLog } from './reason-in-log.ts'
import type { Snapshot } from './reconcile-store.ts'
import { regionHosts } from './region-hosts.ts'
import type { Region, RegionHoldings } from './region-interface.ts'
import { createRegionStacks, rangeOf, type RegionStacks } from './region-stacks.ts'

export type { Region, RegionHoldings } from './region-interface.ts'

/** Options of a region; `engine` is undefined if its parts are started by other means. */
export interface RegionOptions {
  config: RegionConfig
  engine: Engine | undefined
  homes: HomeDatabases
  migrations: HomeMigration[]
  /** Maximum number of a tenant's own relations in its home, and of its other objects. */
  maxObjects: number
  internalToken: InternalToken
  /** The stacks of the same configuration and token, which several instances may have in common; absent: stacks of its own. */
  stacks?: RegionStacks
  clock: Clock
}

const execMilliseconds = 40_000
const digestMilliseconds = 5_000
const clusterMilliseconds = 75_000
const switchoverMilliseconds = 45_000
/**
 * Command that polls inside the container: one call instead of many, because a process in a container costs more than a
 * poll of a socket.
 */
const untilReady = [
  'sh',
  '-c',
  'for i in $(seq 600); do pg_isready -q -h /run/postgresql -U postgres && exit 0; sleep 0.05; done; exit 1',
]

/** Whether a tenant has a database and a runtime of its own, rather than the region's shared ones. */
export function isDedicated({ isolation }: Pick<Snapshot, 'isolation'>): boolean {
  return isolation !== 'schema-per-tenant'
}

/** Whether everything was allocated that a tenant's own services need, so that some may exist. */
export function hasBegun(
  { images, subnet, placement }: Pick<Snapshot, 'images' | 'subnet' | 'placement'>,
  { spansHosts }: Pick<Region, 'spansHosts'>,
): boolean {
  return images !== undefined && subnet !== undefined && (!spansHosts || Object.keys(placement).length > 0)
}

/** Whether a tenant has a cluster of its own. */
export function hasCluster({ isolation }: Pick<Snapshot, 'isolation'>): boolean {
  return isolation === 'cluster-per-tenant'
}

/** Creates a region from the operator's configuration. @throws RangeError for an invalid range of networks */
export function createRegion({
  config,
  engine,
  homes,
  migrations,
  maxObjects,
  internalToken,
  stacks = createRegionStacks(config, internalToken),
  clock,
}: RegionOptions): Region {
  const { docker, processes } = config
  const spansHosts = docker !== undefined && hostsOf(docker).length > 0
  const range = rangeOf(config)
  const stackId = regionStackId(config.id, engine?.installation ?? '')

  const requireEngine = (): Engine => {
    if (engine === undefined)
      throw new EngineError('ENGINE_FAILED', `The region "${config.id}" has no engine for services.`)
    return engine
  }

  const settings = (): ContainerSettings => {
    if (docker === undefined)
      throw new EngineError('ENGINE_FAILED', `The region "${config.id}" has no engine for services.`)
    return docker
  }

  const cachedDigests = new Map<string, { digest: string; until: number }>()
  /** Returns an image's digest. It is read for every tenant of a sweep, so it is cached for a few seconds. */
  const digestOf = async (image: string, signal: AbortSignal): Promise<string> => {
    const now = clock.now().getTime()
    const last = cachedDigests.get(image)
    if (last !== undefined && last.until >= now) return last.digest
    const { id: digest } = await requireEngine().image(image, signal)
    cachedDigests.set(image, { digest, until: now + digestMilliseconds })
    return digest
  }
  /** Returns an image's digest, or the last known one if the name was removed, so that running services continue. */
  const currentDigest = (image: string, signal: AbortSignal): Promise<string> =>
    digestOf(image, signal).catch((error: unknown) => {
      const last = cachedDigests.get(image)
      if (last === undefined || !(error instanceof EngineError) || error.code !== 'IMAGE_MISSING') throw error
      return last.digest
    })

  const regionInput = async (holds: RegionHoldings, signal: AbortSignal): Promise<RegionStackInput> => {
    const { images: named, clusters } = settings()
    const digest = (image: string) => currentDigest(image, signal)
    const digestIfAny = async (image: string | undefined) => (image === undefined ? undefined : digest(image))
    const [postgres, runtime, gateway, etcd, clusterMember] = await Promise.all([
      digest(named.postgres),
      digest(named.runtime),
      digestIfAny(named.gateway),
      digestIfAny(clusters?.etcd_image),
      digestIfAny(spansHosts ? clusters?.member_image : undefined),
    ])
    const images = { postgres, runtime, gateway, etcd, clusterMember }
    return {
      region: config.id,
      installation: requireEngine().installation,
      domain: config.domain,
      docker: settings(),
      images,
      internalToken,
      superuserPassword: config.superuserPassword,
      s3SecretKey: config.s3SecretKey,
      etcd: config.etcd,
      hasHomes: holds.homes,
      hasClusters: holds.clusters,
    }
  }

  const clusterSettings = () => {
    const { clusters } = settings()
    if (clusters === undefined)
      throw new EngineError('ENGINE_FAILED', `The region "${config.id}" has no clusters of Postgres.`)
    return clusters
  }

  /** Returns the names of the images that a new tenant of this isolation model gets. */
  const imageNames = (isolation: Isolation) => {
    if (processes !== undefined) return { postgres: 'postgres', runtime: 'runtime' }
    const { images } = settings()
    return isolation === 'cluster-per-tenant' ? { ...images, postgres: clusterSettings().member_image } : images
  }

  const requireEtcd = () => {
    if (config.etcd === undefined)
      throw new EngineError('ENGINE_FAILED', `The region "${config.id}" has no etcd for clusters.`)
    return config.etcd
  }

  const signalFor = (milliseconds: number, signal: AbortSignal) =>
    AbortSignal.any([signal, clock.timeout(milliseconds)])
  const patroniOf = (tenantId: string) => ({ tenantId, password: patroniPassword(requireEtcd(), tenantId) })
  const access = () => etcdAccess({ engine: requireEngine(), regionStackId: stackId, etcd: requireEtcd(), spansHosts })

  /** Returns the service of a cluster's primary. @throws EngineError UNHEALTHY if there is none */
  const primaryService: Region['primaryService'] = async (tenant, signal) => {
    if (!hasCluster(tenant)) return 'postgres'
    const { primary } = await readCluster(requireEngine(), tenant.id, signal)
    if (primary === undefined) throw new EngineError('UNHEALTHY', "The tenant's cluster has no primary at present.")
    return primary
  }

  const hosts = regionHosts(config, engine)
  const gatewayUrls = () => hosts.reachable(config.gateway_internal_urls)

  /** The content of the region's volumes when its tenants use it. */
  const inUse = { homes: true, clusters: true }
  /** Returns the input of the region's stack on which the stack of a tenant depends; undefined for a tenant without containers. */
  const inputFor = async (tenant: Pick<Snapshot, 'isolation'>, signal: AbortSignal) =>
    isDedicated(tenant) && processes === undefined ? await regionInput(inUse, signal) : undefined

  return {
    config,
    engine,
    stackId,
    subnets: range === undefined ? 0 : subnetCount(range),
    gatewayUrls,
    runtimeUrls: (tenant) =>
      isDedicated(tenant) ? gatewayUrls() : hosts.reachable(sharedRuntimeUrls(config, tenant.id)),
    spansHosts,

    home(tenant) {
      if (!isDedicated(tenant)) return homes.in(tenant.database ?? '')
      const run = async (command: readonly string[], input: string) => {
        const signal = clock.timeout(execMilliseconds)
        return requireEngine().exec(tenant.id, await primaryService(tenant, signal), command, { input, signal })
      }
      return createDedicatedHome(run, migrations, maxObjects)
    },

    stack: async (tenant, signal) => stacks.of(tenant, await inputFor(tenant, signal)),

    needs: async (tenant, signal) => stacks.needs(tenant, await inputFor(tenant, signal)),

    async capacities(reserved, signal) {
      const { services } = stacks.own(await regionInput(inUse, signal))
      return hosts.capacities(services, reserved, signal)
    },

    async images(signal, isolation = 'database-per-tenant') {
      const names = imageNames(isolation)
      const [postgres, runtime] = await Promise.all([digestOf(names.postgres, signal), digestOf(names.runtime, signal)])
      return { postgres, runtime }
    },

    async presentImages(images, isolation, signal) {
      const names = imageNames(isolation)
      const present = (digest: string, name: string) =>
        digestOf(digest, signal).catch((error: unknown) => {
          if (error instanceof EngineError && error.code === 'IMAGE_MISSING') return digestOf(name, signal)
          throw error
        })
      const [postgres, runtime] = await Promise.all([
        present(images.postgres, names.postgres),
        present(images.runtime, names.runtime),
      ])
      return { postgres, runtime }
    },

    async subnetsInUse(signal) {
      if (range === undefined) return []
      const { networks } = await requireEngine().observe(undefined, signal)
      return networks.flatMap(({ subnet }) => subnetNumber(range, subnet) ?? [])
    },

    ownCluster: spansHosts ? { id: stackId, isolation: 'cluster-per-tenant' } : undefined,

    ownStack: async (holds, signal) =>
      docker === undefined ? undefined : stacks.own(await regionInput(holds, signal)),

    async openCluster(tenant, signal) {
      if (!hasCluster(tenant)) return
      const bounded = signalFor(execMilliseconds, signal)
      // Each member of etcd must have begun before clusters depend on it.
      if (spansHosts && tenant.id !== stackId && (await access().origin(stackId, bounded)) === 'none')
        throw new EngineError('UNHEALTHY', `The region "${config.id}" has not begun yet.`)
      await access().add(tenant.id, bounded)
    },

    async removeServices(tenantId, isolation, signal, edge) {
      const isCluster = hasCluster({ isolation })
      const parts = {
        services: serviceNames(isolation),
        volumes: volumesOfModel(isolation, spansHosts),
        attachedContainers: isCluster ? etcdContainersOf(stacks.own(await regionInput(inUse, signal))) : [],
      }
      const silent = await requireEngine().removeServices(tenantId, parts, signal, edge)
      if (isCluster && silent.length === 0) await access().remove(tenantId, signalFor(execMilliseconds, signal))
      return silent
    },

    clusterOrigin: (cluster, signal) => access().origin(cluster, signalFor(execMilliseconds, signal)),

    replaceEtcdMember: (name, others, signal) => access().replace(name, others, signalFor(clusterMilliseconds, signal)),

    async closeCluster(tenant, signal) {
      if (hasCluster(tenant)) await access().remove(tenant.id, signalFor(execMilliseconds, signal))
    },

    primaryService,

    memberRoles(tenantId) {
      const { replicator, rewind } = memberPasswords(requireEtcd(), tenantId)
      const verifier = (password: string) => scramVerifier(password, randomBytes(16))
      return memberRolesSql({ replicator: verifier(replicator), rewind: verifier(rewind) })
    },

    adoptData: (tenantId, systemIdentifier, signal) =>
      access().adopt(tenantId, systemIdentifier, signalFor(execMilliseconds, signal)),

    cluster: async (tenant, signal) =>
      hasCluster(tenant) ? readCluster(requireEngine(), tenant.id, signal) : undefined,

    readyRouters: (tenantId, signal) => readyRouters(requireEngine(), tenantId, signal),

    async switchOver(tenantId, from, to, signal) {
      const bounded = signalFor(switchoverMilliseconds, signal)
      const identities = spansHosts ? (await readCluster(requireEngine(), tenantId, bounded)).identities : undefined
      return switchOver(requireEngine(), { ...patroniOf(tenantId), from, to, identities }, bounded)
    },

    copyAgain: (tenantId, member, signal) =>
      copyAgain(requireEngine(), { ...patroniOf(tenantId), member }, signalFor(execMilliseconds, signal)),

    async awaitDatabase(tenant, signal) {
      if (hasCluster(tenant)) {
        const read = (each: AbortSignal) => readCluster(requireEngine(), tenant.id, each)
        return awaitQuorum(read, clusterMilliseconds, clock, signal)
      }
      const bounded = signalFor(execMilliseconds, signal)
      try {
        const { code } = await requireEngine().exec(tenant.id, 'postgres', untilReady, { signal: bounded })
        if (code !== 0) throw new EngineError('UNHEALTHY', "The tenant's Postgres does not accept statements.")
      } catch (cause) {
        throw (await reasonInLog(requireEngine(), tenant.id, bounded).catch(() => undefined)) ?? cause
      }
    },
  }
}
