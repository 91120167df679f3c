// The stack of a tenant with a cluster of its own: three members of Postgres, two routers to the primary, two runtimes. Pure.
import { memberArchiveSettings } from './archive-settings.ts'
import { clusterServices, clusterVolumes } from './cluster-services.ts'
import { derivedPassword, etcdName, memberNumbers, type EtcdCredentials } from './etcd-services.ts'
import { clusterSettings, etcdPasswordPurpose } from './patroni-settings.ts'
import type { Placement } from './placed.ts'
import type { AttachedContainer, Network, OtherContainer, Resources, Service, Stack } from './stack.ts'

/** The parts of a region that its clusters use. */
export interface ClusterRegion {
  etcd: EtcdCredentials
  /** Containers of etcd's members, which are attached to each cluster's network. */
  etcdContainers: readonly OtherContainer[]
}

/** Returns the password of a cluster's user of the region's etcd. @param cluster ID of the cluster's stack */
export function etcdClusterPassword(etcd: Pick<EtcdCredentials, 'seed'>, cluster: string): string {
  return derivedPassword(etcd, etcdPasswordPurpose(cluster))
}

interface ClusterInput {
  id: string
  running: boolean
  restarts: number
  subnet: string
  image: string
  /** Limits of each member's Postgres. */
  resources: Resources
  gateways: readonly OtherContainer[]
  /** Name of Postgres for runtimes and gateways, on the tenant's network. */
  postgresAlias: string
  region: ClusterRegion
  hasHome: boolean
  isArchived: boolean
  runtimes: readonly Service[]
  /** Hosts of the services, in a region with several. */
  placement: Placement
  /** Whether the region has several hosts. */
  spansHosts: boolean
  /** Whether the network is encrypted between them. */
  encryption: Pick<Network, 'isEncrypted'>
}

/**
 * Returns a cluster's stack. A member's volume may be missing, because Patroni copies the data from another member; it
 * never creates a second database, because etcd records the first.
 */
export function clusterStack(input: ClusterInput): Stack {
  const { id, running, subnet, gateways, region, hasHome, runtimes } = input
  const attached: AttachedContainer[] = [
    ...gateways.map((gateway) => ({ ...gateway, alias: 'gateway' })),
    ...region.etcdContainers.map((member, at) => ({ ...member, alias: etcdName(memberNumbers[at] ?? 1) })),
  ]
  const files = new Set(runtimes.flatMap(({ volumes }) => Object.keys(volumes)))
  return {
    id,
    state: running ? 'running' : 'stopped',
    networks: [
      { name: 'net', subnet, internal: true, hostAddress: false, ...input.encryption, attachedContainers: attached },
    ],
    volumes: [
      ...clusterVolumes,
      // Runtimes with a volume each have their files in S3.
      ...[...files].map((name) => ({ name, mustExist: hasHome && files.size === 1, isGuarded: false })),
    ],
    services: [
      ...clusterServices({
        id,
        image: input.image,
        restarts: input.restarts,
        resources: input.resources,
        etcd: region.etcd,
        settings: clusterSettings(input.spansHosts),
        ownParameters: input.isArchived ? memberArchiveSettings : {},
        routerAlias: input.postgresAlias,
        hosts: input.placement,
        spansHosts: input.spansHosts,
      }),
      ...runtimes,
    ],
  }
}
