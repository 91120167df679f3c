// The interface of a region for the reconciler: its engine, its shared Postgres, its runtimes and gateways.
import type { ClusterOrigin, ClusterState } from '../clusters/index.ts'
import type { Engine } from '../engines/index.ts'
import type { HomeServer } from '../homes/index.ts'
import type { HostCapacity, ServiceNeed } from '../placement/index.ts'
import type { RegionConfig } from '../regions/index.ts'
import type { Isolation, OwnIsolation, Stack } from '../stacks/index.ts'
import type { Snapshot } from './reconcile-store.ts'

/** A region for the reconciler: the addresses of its parts, and the stacks that should run there. */
export interface Region {
  config: RegionConfig
  /** Engine of the region; undefined if its parts are started by other means. */
  engine: Engine | undefined
  /** Returns the URLs of the gateways. On several hosts, those of hosts that do not respond are left out. */
  gatewayUrls(): readonly string[]
  /** Returns the URLs for a tenant's health, usage and data. On several hosts, those of hosts that do not respond are left out. */
  runtimeUrls(tenant: Pick<Snapshot, 'id' | 'isolation'>): readonly string[]
  /** The server of the tenant's home: the region's shared one, or the tenant's own. */
  home(tenant: Pick<Snapshot, 'id' | 'isolation' | 'database'>): HomeServer
  /**
   * Returns the specified stack of the tenant. @throws EngineError if it cannot be determined, for example for a
   * missing image
   */
  stack(tenant: Snapshot, signal: AbortSignal): Promise<Stack>
  /** Whether the region has several hosts, so that each service of a tenant needs one. */
  spansHosts: boolean
  /** Returns the services of a tenant that need not exist yet, with the memory that they reserve. */
  needs(tenant: Pick<Snapshot, 'isolation' | 'sizes'>, signal: AbortSignal): Promise<ServiceNeed[]>
  /**
   * Returns the hosts that respond, with the memory that is not reserved.
   * @param reserved memory that tenants' services reserve, by host
   */
  capacities(reserved: ReadonlyMap<string, number>, signal: AbortSignal): Promise<HostCapacity[]>
  /** Digests of the images that a new tenant gets. @param isolation by default, database-per-tenant */
  images(signal: AbortSignal, isolation?: Isolation): Promise<{ postgres: string; runtime: string }>
  /** Returns the digests, each replaced by that of a new tenant if the host does not have the image. */
  presentImages(
    images: { postgres: string; runtime: string },
    isolation: Isolation,
    signal: AbortSignal,
  ): Promise<{ postgres: string; runtime: string }>
  /** Number of subnets in the region's range. */
  subnets: number
  /** Returns the subnet numbers that networks of Tenantry use on the engine, of any installation's stack. */
  subnetsInUse(signal: AbortSignal): Promise<number[]>
  /** ID of the region's own stack. */
  stackId: string
  /** The cluster in the region's own stack, which tenants share; undefined if they share a single Postgres. */
  ownCluster: Pick<Snapshot, 'id' | 'isolation'> | undefined
  /** Returns the specified stack of the region's shared services; undefined if they are started by other means. */
  ownStack(holds: RegionHoldings, signal: AbortSignal): Promise<Stack | undefined>
  /** Waits until the tenant's own Postgres accepts statements, and a cluster confirms writes. */
  awaitDatabase(tenant: Snapshot, signal: AbortSignal): Promise<void>
  /** Gives a new cluster its user and keys in the region's etcd. A tenant without a cluster needs none. */
  openCluster(tenant: Pick<Snapshot, 'id' | 'isolation'>, signal: AbortSignal): Promise<void>
  /** Returns where the database of a cluster is from. Once there is one, members copy it from each other, and never create an empty one. */
  clusterOrigin(cluster: string, signal: AbortSignal): Promise<ClusterOrigin>
  /**
   * Gives a member of the region's etcd whose data is lost a new ID, so that it enters the cluster with an empty volume.
   * @param name name of its service, which must have no container
   * @param others names of the other members that may have data
   * @throws EngineError UNHEALTHY if they have no quorum, NOT_FOUND if none of them is in a cluster
   */
  replaceEtcdMember(name: string, others: readonly string[], signal: AbortSignal): Promise<void>
  /** Removes the user and the keys of a cluster from the region's etcd, so that it can begin again. */
  closeCluster(tenant: Pick<Snapshot, 'id' | 'isolation'>, signal: AbortSignal): Promise<void>
  /**
   * Returns the service of a tenant's own Postgres; of a cluster, that of its present primary. @throws EngineError UNHEALTHY
   * without a primary
   */
  primaryService(tenant: Pick<Snapshot, 'id' | 'isolation'>, signal: AbortSignal): Promise<string>
  /**
   * Removes the services of one model, with the database in them. The files of the tenant stay, except those on a volume that no services
   * of another model use: in a region on several hosts, those of a single database.
   * @param edge called before the containers and before the volumes are removed
   * @returns the hosts that did not respond, on which some may remain. Then etcd still knows a cluster
   */
  removeServices(
    tenantId: string,
    isolation: OwnIsolation,
    signal: AbortSignal,
    edge?: () => Promise<void>,
  ): Promise<readonly string[]>
  /** Returns SQL that creates the roles with which the members of a tenant's cluster copy from each other. */
  memberRoles(tenantId: string): string
  /**
   * Makes a data directory that exists the one with which a tenant's cluster begins. No member may run yet.
   * @param systemIdentifier Postgres' identifier of the data directory
   * @throws EngineError UNHEALTHY
   */
  adoptData(tenantId: string, systemIdentifier: string, signal: AbortSignal): Promise<void>
  /** Reads the state of a tenant's cluster; undefined for a tenant without a cluster. */
  cluster(tenant: Pick<Snapshot, 'id' | 'isolation'>, signal: AbortSignal): Promise<ClusterState | undefined>
  /** Returns the names of the routers of a tenant's cluster that reach its primary. */
  readyRouters(tenantId: string, signal: AbortSignal): Promise<ReadonlySet<string>>
  /**
   * Makes another member of a tenant's cluster the primary. @returns why Patroni did not do it; undefined if it did
   * @throws EngineError UNHEALTHY if no member responds
   */
  switchOver(tenantId: string, from: string, to: string, signal: AbortSignal): Promise<string | undefined>
  /** Lets a member of a tenant's cluster copy its data again from the primary. @throws EngineError UNHEALTHY if it does not */
  copyAgain(tenantId: string, member: string, signal: AbortSignal): Promise<void>
}

/** The data that the volumes of a region's own stack hold. Once they hold it, they are not created again. */
export interface RegionHoldings {
  /** Whether its shared Postgres may hold homes. */
  homes: boolean
  /** Whether its etcd may hold the state of clusters. */
  clusters: boolean
}
