// The parts of a region, each with its fixed address on the region's network and its host. Pure.
import { clusterMembers, clusterRouters } from './cluster-services.ts'
import { hostsOf, type ContainerSettings, type DockerSettings, type HostSettings } from './container-settings.ts'
import { memberNumbers, type MemberNumber } from './etcd-services.ts'
import type { Placement } from './placed.ts'
import type { Range } from './subnets.ts'
import { parseRange, regionAddress } from './subnets.ts'

/** Last numbers of the fixed addresses, for parts that must be found without the engine's DNS. */
const lastOctets = {
  host: 1,
  controlPlane: 5,
  postgres: 10,
  gateway: 11,
  firstRuntime: 20,
  /** The first gateway of a region on several hosts. */
  firstGateway: 40,
  /** The first proxy in front of the gateways, on the network on which they are published. */
  firstProxy: 140,
} as const

/** A part of a region: its address, and the host that it runs on in a region with several. */
export interface RegionPart {
  address: string
  host?: string
}

/** A gateway that the control plane creates. */
export interface GatewayPart extends RegionPart {
  /** Name of its service. */
  name: string
  /** Name of its volume. */
  volume: string
  /** Address and ports at which it receives requests. */
  published: OwnGateway
}

export type OwnGateway = Extract<DockerSettings['gateway'], { port: number }>

/** All parts of a region. */
export interface RegionLayout {
  range: Range
  /** The shared Postgres, of a region on one host. */
  postgres: RegionPart
  /** Hosts of the members and routers of the shared cluster, of a region on several hosts. */
  clusterHosts: Placement
  /** Addresses of the gateways, created or existing. */
  gateways: RegionPart[]
  /** The gateways that the control plane creates. */
  ownGateways: GatewayPart[]
  runtimes: (RegionPart & { volume: string })[]
  controlPlanes: (RegionPart & { container: string })[]
  /** The proxies in front of the gateways, on the network on which the gateways are published. */
  proxies: (RegionPart & { container: string })[]
  /** Hosts of etcd's members, by the number of the member; undefined on one host. */
  etcdHosts: Record<MemberNumber, string | undefined>
}

/** Returns the address of the only host on the region's network. @throws RangeError for an invalid range */
export function hostOnRegionNetwork({ network_range }: Pick<DockerSettings, 'network_range'>): string {
  return regionAddress(parseRange(network_range), lastOctets.host)
}

/**
 * Returns the layout of a region. Parts of one kind are spread over the hosts. @throws RangeError for an invalid range of
 * networks
 */
export function regionLayout(settings: ContainerSettings): RegionLayout {
  const hosts = hostsOf(settings)
  const range = parseRange(settings.network_range, hosts.length > 0)
  const address = (last: number) => regionAddress(range, last)
  const on = (number: number) => hostOf(hosts, number)
  const ownGateways = gatewaysOf(settings, address)
  return {
    range,
    postgres: { address: address(lastOctets.postgres) },
    clusterHosts: {
      ...spreadOver(hosts, clusterMembers),
      ...spreadOver(hosts, clusterRouters),
    },
    gateways: ownGateways.length > 0 ? ownGateways : [{ address: address(lastOctets.gateway) }],
    ownGateways,
    runtimes: Array.from({ length: settings.shared_runtimes ?? Math.max(hosts.length, 1) }, (_, number) => ({
      address: address(lastOctets.firstRuntime + number),
      // On one host, the runtimes share their files.
      volume: hosts.length === 0 ? 'files' : `files-${number}`,
      ...on(number),
    })),
    controlPlanes: controlContainers(settings).map((container, number) => ({
      ...container,
      address: address(lastOctets.controlPlane + number),
    })),
    proxies: proxyContainers(settings).map((container, number) => ({
      ...container,
      address: address(lastOctets.firstProxy + number),
    })),
    etcdHosts: Object.fromEntries(memberNumbers.map((member) => [member, on(member - 1).host])) as Record<
      MemberNumber,
      string | undefined
    >,
  }
}

function spreadOver(hosts: readonly HostSettings[], services: readonly string[]): Placement {
  return Object.fromEntries(
    services.flatMap((service, number) => {
      const { host } = hostOf(hosts, number)
      return host === undefined ? [] : [[service, host]]
    }),
  )
}

/** Returns the host of the part of a number, in turn. */
function hostOf(hosts: readonly HostSettings[], number: number): { host?: string } {
  const host = hosts[number % hosts.length]
  return host === undefined ? {} : { host: host.id }
}

function gatewaysOf(settings: ContainerSettings, address: (last: number) => string): GatewayPart[] {
  const { gateway } = settings
  if ('container' in gateway) return []
  if ('host_address' in gateway)
    return [{ name: 'gateway', volume: 'gateway', address: address(lastOctets.gateway), published: gateway }]
  return hostsOf(settings).map(({ id, address: hostAddress }, number) => ({
    name: `gateway-${id}`,
    volume: `gateway-${id}`,
    host: id,
    address: address(lastOctets.firstGateway + number),
    published: { host_address: hostAddress, ...gateway },
  }))
}

function controlContainers(settings: ContainerSettings): { container: string; host?: string }[] {
  if ('control_containers' in settings) return settings.control_containers
  return settings.control_container === undefined ? [] : [{ container: settings.control_container }]
}

function proxyContainers(settings: ContainerSettings): { container: string; host: string }[] {
  return 'control_containers' in settings ? (settings.proxy_containers ?? []) : []
}
