// Computes a region's stack: the Postgres, the runtimes and the gateway that its tenants share. Pure.
import { acceptedTokens, type InternalToken } from '@tenantry/contract'
import { hasEncryptedNetworks, hostsOf, type ContainerSettings } from './container-settings.ts'
import { clusterServices, clusterVolumes } from './cluster-services.ts'
import { etcdName, etcdServices, etcdVolumes, memberNumbers, type EtcdCredentials } from './etcd-services.ts'
import { SecretText } from './secret-text.ts'
import { containerName } from './object-names.ts'
import { onHost } from './on-host.ts'
import { sharedClusterSettings } from './patroni-settings.ts'
import { placed } from './placed.ts'
import { regionLayout, type GatewayPart, type OwnGateway, type RegionLayout, type RegionPart } from './region-layout.ts'
import {
  egressEnvironment,
  siblingHosts,
  runtimeEnvironment,
  storageEnvironment,
  storageRelayEnvironment,
  storageSecrets,
} from './runtime-settings.ts'
import { sharedServerSettings } from './shared-server-settings.ts'
import type { Attachment, AttachedContainer, OtherContainer, Resources, Service, Stack } from './stack.ts'
import { parseRange, regionAddress, regionSubnets } from './subnets.ts'
import { failoverSeconds, nodeService, ports, postgresService } from './tenant-services.ts'

const [megabyte, gigabyte] = [2 ** 20, 2 ** 30]
const shared: Record<'postgres' | 'runtime' | 'gateway', Resources> = {
  // The watchdog's limit for all tenants' sessions is 2 GB, and it needs a second to act.
  postgres: { memoryBytes: 3 * gigabyte, cpuMillis: 2_000, pids: 512 },
  runtime: { memoryBytes: 2 * gigabyte, cpuMillis: 2_000, pids: 1_024 },
  gateway: { memoryBytes: gigabyte, cpuMillis: 2_000, pids: 256 },
}
const connections = 200
const reservedConnections = 130
const runtimeConnections = 100
/** Settings of the shared Postgres of a region on several hosts that depend on its size. */
const clusterSize = {
  max_connections: connections,
  reserved_connections: reservedConnections,
  shared_buffers: `${shared.postgres.memoryBytes / megabyte / 8}MB`,
}

/**
 * Returns the ID of a region's stack. It contains the installation, because two on one engine may have regions of the
 * same name.
 */
export function regionStackId(region: string, installation: string): string {
  return `region-${region}-${installation.slice(0, 8)}`
}

/** A URL of a part of a region, and the host of the part in a region with several. */
export interface PartUrl {
  url: string
  host?: string
}

/** Addresses of a region's parts for the control plane. */
interface RegionEndpoints {
  postgresHost: string
  runtimes: PartUrl[]
  gateways: PartUrl[]
}

/** Name of all gateways for the proxies in front of them. */
export const proxiedGateway = 'proxied-gateway'

/**
 * Returns the name of the routers to the shared Postgres of a region on several hosts. A control plane's container may be on the
 * networks of several regions.
 */
function sharedPostgresName(region: string): string {
  return `shared-postgres-${region}`
}

/** Returns the addresses of a region's Postgres, runtimes and gateways. @throws RangeError for an invalid range */
export function regionEndpoints(region: string, settings: ContainerSettings): RegionEndpoints {
  const { postgres, runtimes, gateways } = regionLayout(settings)
  const postgresHost = hostsOf(settings).length > 0 ? sharedPostgresName(region) : postgres.address
  const urlOf =
    (port: number) =>
    ({ address, host }: RegionPart): PartUrl => ({
      url: `http://${address}:${port}`,
      ...(host === undefined ? {} : { host }),
    })
  return {
    postgresHost: `${postgresHost}:${ports.postgres}`,
    runtimes: runtimes.map(urlOf(ports.runtime)),
    gateways: gateways.map(urlOf(ports.gatewayInternal)),
  }
}

/** Input of a region's stack. */
export interface RegionStackInput {
  region: string
  installation: string
  domain: string
  /** The region's settings. */
  docker: ContainerSettings
  /** Digests of the images. */
  images: {
    postgres: string
    runtime: string
    gateway: string | undefined
    etcd?: string | undefined
    clusterMember?: string | undefined
  }
  internalToken: InternalToken
  superuserPassword: string
  /** Secret key of the shared runtimes' storage; undefined without one. */
  s3SecretKey?: string | undefined
  /** Whether the volumes hold homes and must not be created again. */
  hasHomes: boolean
  /** Credentials of the etcd of a region with clusters; undefined without clusters. */
  etcd?: EtcdCredentials | undefined
  /** Whether etcd's volumes hold the state of clusters and must not be created again. Absent: they do not. */
  hasClusters?: boolean
}

/**
 * Returns the stack of a region: the Postgres, the runtimes and, if the engine runs them, the gateways that its tenants
 * share.
 * @throws RangeError for an invalid range of networks, or for a gateway without an image
 */
export function regionStack(input: RegionStackInput): Stack {
  const { region, installation, docker, images, internalToken, s3SecretKey, hasHomes } = input
  const layout = regionLayout(docker)
  const spansHosts = hostsOf(docker).length > 0
  const token = new SecretText(acceptedTokens(internalToken).join('\n'))
  const runtimes = layout.runtimes.map((part, number) => ({
    ...nodeService({
      name: `runtime-${number}`,
      image: images.runtime,
      livePort: ports.runtime,
      networks: [attachment(part, `runtime-${number}`)],
      resources: shared.runtime,
      environment: {
        TENANTRY_PORT: String(ports.runtime),
        TENANTRY_CONTROL_URL: docker.control_url,
        TENANTRY_REGION: region,
        TENANTRY_MAX_CONNECTIONS: String(Math.floor(runtimeConnections / layout.runtimes.length)),
        TENANTRY_SIBLINGS: String(layout.runtimes.length - 1),
        ...siblingHosts(layout.runtimes.map((_, each) => `runtime-${each}`)),
        // Only a region on several hosts has a shared Postgres with replicas.
        ...(spansHosts ? { TENANTRY_FAILOVER_SECONDS: String(failoverSeconds) } : {}),
        ...runtimeEnvironment(docker),
        ...storageEnvironment(docker),
      },
      internalToken: token,
      secrets: storageSecrets(s3SecretKey),
      volume: part.volume,
      // It has a fixed address, so two instances cannot run alongside each other. The other runtimes serve meanwhile.
      replace: 'stop-first',
      restarts: 0,
    }),
    ...onHost(part),
  }))
  const postgres = spansHosts ? sharedCluster(input, layout) : sharedPostgres(input, layout)
  const subnets = regionSubnets(layout.range)
  const assigned = spansHosts ? { assigned: subnets.assigned } : {}
  const encryption = hasEncryptedNetworks(docker) ? { isEncrypted: true } : {}
  const net = {
    name: 'net',
    subnet: subnets.net,
    ...assigned,
    internal: true,
    hostAddress: true,
    ...encryption,
    attachedContainers: attachedContainersOf(docker, layout),
  }
  const etcd = etcdOf(input, layout)
  const files = new Map(layout.runtimes.map((part) => [part.volume, part]))
  const volumes = [
    ...postgres.volumes,
    ...[...files].map(([name, part]) => ({
      name,
      // On several hosts, the files are in S3.
      mustExist: hasHomes && !spansHosts,
      isGuarded: false,
      ...onHost(part),
    })),
    ...(etcd.length === 0 ? [] : etcdVolumes(input.hasClusters === true || (spansHosts && hasHomes), layout.etcdHosts)),
  ]
  const base: Stack = {
    id: regionStackId(region, installation),
    state: 'running',
    networks: [net],
    volumes,
    services: [...postgres.services, ...runtimes, ...etcd],
  }
  if (layout.ownGateways.length === 0) return base
  // A network without a route to the outside publishes no ports.
  const publicNetwork = {
    name: 'door',
    subnet: subnets.proxy,
    ...(layout.proxies.length === 0 ? {} : { assigned: subnets.proxyAssigned }),
    internal: false,
    hostAddress: true,
    ...encryption,
    attachedContainers: layout.proxies.map((part) => ({ ...part, alias: 'proxy' })),
  }
  return {
    ...base,
    networks: [...base.networks, publicNetwork],
    volumes: [
      ...base.volumes,
      ...layout.ownGateways.map((part) => ({ name: part.volume, mustExist: false, isGuarded: false, ...onHost(part) })),
    ],
    services: [...base.services, ...layout.ownGateways.map((part) => gatewayService(input, part, layout))],
  }
}

/** The services of the shared Postgres, and their volumes. */
type PostgresPart = Pick<Stack, 'services' | 'volumes'>

function sharedPostgres({ images, superuserPassword, hasHomes }: RegionStackInput, layout: RegionLayout): PostgresPart {
  const service = postgresService({
    image: images.postgres,
    network: attachment(layout.postgres, 'postgres'),
    resources: shared.postgres,
    connections,
    reservedConnections,
    settings: sharedServerSettings,
    secrets: { 'superuser-password': new SecretText(superuserPassword) },
    restarts: 0,
  })
  return { services: [service], volumes: [{ name: 'data', mustExist: hasHomes, isGuarded: true }] }
}

/** Returns the shared Postgres of a region on several hosts: a cluster, one member of which may be lost with its host. */
function sharedCluster(input: RegionStackInput, { clusterHosts }: RegionLayout): PostgresPart {
  const { region, installation, images, etcd, superuserPassword } = input
  if (images.clusterMember === undefined || etcd === undefined)
    throw new RangeError('A region on several hosts needs "clusters": its shared Postgres is one.')
  const id = regionStackId(region, installation)
  const services = clusterServices({
    id,
    image: images.clusterMember,
    restarts: 0,
    resources: shared.postgres,
    etcd,
    settings: sharedClusterSettings(clusterSize),
    ownParameters: {},
    superuserPassword,
    routerAlias: sharedPostgresName(region),
    hosts: clusterHosts,
    spansHosts: true,
  })
  return placed({ id, services, volumes: [...clusterVolumes] }, clusterHosts)
}

function attachment({ address }: RegionPart, alias: string): Attachment {
  return { network: 'net', aliases: [alias], address }
}

function etcdOf({ docker, images, etcd }: RegionStackInput, { range, etcdHosts }: RegionLayout): Service[] {
  if (docker.clusters === undefined) return []
  if (images.etcd === undefined || etcd === undefined)
    throw new RangeError('The region has clusters, but no image or no credentials for etcd.')
  return etcdServices(images.etcd, range, etcd, etcdHosts)
}

/** Returns the containers of etcd's members in a region's stack, which are attached to the clusters' networks; none without clusters. */
export function etcdContainersOf({ services, id }: Stack): OtherContainer[] {
  return memberNumbers.flatMap((member) =>
    services.filter(({ name }) => name === etcdName(member)).map((service) => otherContainer(id, service)),
  )
}

/** Returns the gateways' containers of a region and its stack, which are attached to the tenants' networks. */
export function gatewayContainersOf(docker: ContainerSettings, { services, id }: Stack): OtherContainer[] {
  if ('container' in docker.gateway) return [docker.gateway]
  const names = regionLayout(docker).ownGateways.map(({ name }) => name)
  return services.filter(({ name }) => names.includes(name)).map((service) => otherContainer(id, service))
}

function otherContainer(stackId: string, service: Service): OtherContainer {
  return { container: containerName(stackId, service), ...onHost(service) }
}

function gatewayService(input: RegionStackInput, part: GatewayPart, { proxies }: RegionLayout): Service {
  const { domain, docker, images, internalToken } = input
  const { published } = part
  const spansHosts = hostsOf(docker).length > 0
  if (images.gateway === undefined) throw new RangeError('The region has no image for its gateway.')
  const { host_address: hostAddress, port, postgres_port: postgresPort } = published
  const service = nodeService({
    name: part.name,
    image: images.gateway,
    livePort: ports.gatewayInternal,
    networks: [attachment(part, 'gateway'), { network: 'door', aliases: proxies.length === 0 ? [] : [proxiedGateway] }],
    resources: shared.gateway,
    environment: {
      TENANTRY_PORT: String(ports.gateway),
      TENANTRY_INTERNAL_HOST: '0.0.0.0',
      TENANTRY_INTERNAL_PORT: String(ports.gatewayInternal),
      TENANTRY_POSTGRES_PORT: String(ports.postgresProxy),
      TENANTRY_CONTROL_URL: docker.control_url,
      TENANTRY_DOMAIN: domain,
      TENANTRY_TENANT_RANGE: docker.network_range,
      // The control plane calls from there, and clients of the published ports arrive with the host's address.
      TENANTRY_REGION_RANGE: `${regionAddress(parseRange(docker.network_range), 0)}/24`,
      ...(published.require_sql_tls === true ? { TENANTRY_POSTGRES_REQUIRE_TLS: '1' } : {}),
      ...limitsByAddress(
        published,
        proxies.map(({ address }) => address),
      ),
      ...egressEnvironment(docker),
      ...(spansHosts ? { TENANTRY_SOURCE: `${input.region}-${part.name}`, ...storageRelayEnvironment(docker) } : {}),
    },
    internalToken: new SecretText(acceptedTokens(internalToken).join('\n')),
    secrets: spansHosts ? storageSecrets(input.s3SecretKey) : {},
    volume: part.volume,
    // The old one must have ended before its ports on the host are free.
    replace: 'stop-first',
    restarts: 0,
    isAttached: true,
    published: [
      { containerPort: ports.gateway, hostAddress, hostPort: port },
      { containerPort: ports.postgresProxy, hostAddress, hostPort: postgresPort },
    ],
  })
  return { ...service, ...onHost(part) }
}

/**
 * Returns the gateway's settings that depend on the proxies in front of all clients.
 * @param attached addresses of the proxies that are attached to the gateway's network
 */
function limitsByAddress(
  { trusted_proxies: others = [] }: OwnGateway,
  attached: readonly string[],
): Record<string, string> {
  const proxies = [...attached, ...others]
  if (proxies.length > 0) return { TENANTRY_TRUSTED_PROXIES: proxies.join(',') }
  // An unknown proxy may have any address, so an address has no share of its own: the gateway's maximum.
  return {
    TENANTRY_CONNECTIONS_PER_ADDRESS: '5000',
    TENANTRY_REQUESTS_PER_ADDRESS: '3600',
    TENANTRY_REJECTIONS_PER_ADDRESS: '1000000/1000000',
  }
}

function attachedContainersOf({ gateway }: ContainerSettings, layout: RegionLayout): AttachedContainer[] {
  const existing = layout.gateways.map(({ address }) => address)
  return [
    ...layout.controlPlanes.map((part) => ({ ...part, alias: 'control-plane' })),
    ...('container' in gateway
      ? existing.map((address) => ({ container: gateway.container, alias: 'gateway', address }))
      : []),
  ]
}
