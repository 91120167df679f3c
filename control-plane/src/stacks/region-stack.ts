// Computes a region's stack: the Postgres, the runtimes and the gateway that its tenants share. Pure.
import { acceptedTokens, type InternalToken } from '@tenantry/contract'
import type { DockerSettings } from './docker-settings.ts'
import { etcdName, etcdServices, etcdVolumes, memberNumbers, type EtcdCredentials } from './etcd-services.ts'
import { SecretText } from './secret-text.ts'
import { containerName } from './object-names.ts'
import {
  egressEnvironment,
  siblingHosts,
  runtimeEnvironment,
  storageEnvironment,
  storageSecrets,
} from './runtime-settings.ts'
import { sharedServerSettings } from './shared-server-settings.ts'
import type { Attachment, AttachedContainer, Resources, Service, Stack } from './stack.ts'
import { parseRange, regionAddress, regionSubnets, type Range } from './subnets.ts'
import { nodeService, ports, postgresService } from './tenant-services.ts'

/** Last numbers of the fixed addresses on the region's network, for parts that must be found without the engine's DNS. */
const lastOctets = { host: 1, controlPlane: 5, postgres: 10, gateway: 11, firstRuntime: 20 } as const

const gigabyte = 2 ** 30
const shared: Record<'postgres' | 'runtime' | 'gateway', Resources> = {
  // The watchdog's limit for all tenants' sessions is 2 GB, and it needs a second to act.
  postgres: { memoryBytes: 3 * gigabyte, cpuMillis: 2_000, pids: 512 },
  runtime: { memoryBytes: 2 * gigabyte, cpuMillis: 2_000, pids: 1_024 },
  gateway: { memoryBytes: gigabyte, cpuMillis: 2_000, pids: 128 },
}
const connections = 200
const reservedConnections = 130
const runtimeConnections = 100

/**
 * Returns the ID of a region's stack. It contains the installation, because two on one engine may have regions of the
 * same name.
 */
export function regionStackId(region: string, installation: string): string {
  return `region-${region}-${installation.slice(0, 8)}`
}

/** Addresses of a region's parts for the control plane. */
interface RegionEndpoints {
  postgresHost: string
  runtimeUrls: string[]
  gatewayInternalUrl: string
}

/** Returns the addresses of a region's Postgres, runtimes and gateway. @throws RangeError for an invalid range */
export function regionEndpoints(docker: DockerSettings): RegionEndpoints {
  const range = parseRange(docker.network_range)
  const address = (last: number) => regionAddress(range, last)
  return {
    postgresHost: `${address(lastOctets.postgres)}:${ports.postgres}`,
    runtimeUrls: runtimeNumbers(docker).map(
      (number) => `http://${address(lastOctets.firstRuntime + number)}:${ports.runtime}`,
    ),
    gatewayInternalUrl: `http://${address(lastOctets.gateway)}:${ports.gatewayInternal}`,
  }
}

/** Returns the host's address on the region's network. @throws RangeError for an invalid range */
export function hostOnRegionNetwork({ network_range }: Pick<DockerSettings, 'network_range'>): string {
  return regionAddress(parseRange(network_range), lastOctets.host)
}

/** Input of a region's stack. */
export interface RegionStackInput {
  region: string
  installation: string
  domain: string
  docker: DockerSettings
  /** Digests of the images. */
  images: { postgres: string; runtime: string; gateway: string | undefined; etcd?: string | undefined }
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
 * Returns the stack of a region: the Postgres, the runtimes and, if the engine runs it, the gateway that its tenants
 * share.
 * @throws RangeError for an invalid range of networks, or for a gateway without an image
 */
export function regionStack(input: RegionStackInput): Stack {
  const { region, installation, docker, images, internalToken, superuserPassword, s3SecretKey, hasHomes } = input
  const range = parseRange(docker.network_range)
  const attachmentAt = (last: number, alias: string): Attachment => ({
    network: 'net',
    aliases: [alias],
    address: regionAddress(range, last),
  })
  const token = new SecretText(acceptedTokens(internalToken).join('\n'))
  const runtimes = runtimeNumbers(docker).map((number) =>
    nodeService({
      name: `runtime-${number}`,
      image: images.runtime,
      livePort: ports.runtime,
      networks: [attachmentAt(lastOctets.firstRuntime + number, `runtime-${number}`)],
      resources: shared.runtime,
      environment: {
        TENANTRY_PORT: String(ports.runtime),
        TENANTRY_CONTROL_URL: docker.control_url,
        TENANTRY_REGION: region,
        TENANTRY_MAX_CONNECTIONS: String(Math.floor(runtimeConnections / runtimeNumbers(docker).length)),
        TENANTRY_SIBLINGS: String(runtimeNumbers(docker).length - 1),
        ...siblingHosts(runtimeNumbers(docker).map((number) => `runtime-${number}`)),
        ...runtimeEnvironment(docker),
        ...storageEnvironment(docker),
      },
      internalToken: token,
      secrets: storageSecrets(s3SecretKey),
      volume: 'files',
      // It has a fixed address, so two instances cannot run alongside each other. The other runtimes serve meanwhile.
      replace: 'stop-first',
      restarts: 0,
    }),
  )
  const postgres = postgresService({
    image: images.postgres,
    network: attachmentAt(lastOctets.postgres, 'postgres'),
    resources: shared.postgres,
    connections,
    reservedConnections,
    settings: sharedServerSettings,
    secrets: { 'superuser-password': new SecretText(superuserPassword) },
    restarts: 0,
  })
  const net = {
    name: 'net',
    subnet: regionSubnets(range).net,
    internal: true,
    hostAddress: true,
    attachedContainers: attachedContainersOf(docker, range),
  }
  const etcd = etcdOf(input, range)
  const volumes = [
    { name: 'data', mustExist: hasHomes, isGuarded: true },
    { name: 'files', mustExist: hasHomes, isGuarded: false },
    ...(etcd.length === 0 ? [] : etcdVolumes(input.hasClusters === true)),
  ]
  const base: Stack = {
    id: regionStackId(region, installation),
    state: 'running',
    networks: [net],
    volumes,
    services: [postgres, ...runtimes, ...etcd],
  }
  if (!('port' in docker.gateway)) return base
  // A network without a route to the outside publishes no ports.
  const publicNetwork = {
    name: 'door',
    subnet: regionSubnets(range).proxy,
    internal: false,
    hostAddress: true,
    attachedContainers: [],
  }
  return {
    ...base,
    networks: [...base.networks, publicNetwork],
    volumes: [...base.volumes, { name: 'gateway', mustExist: false, isGuarded: false }],
    services: [
      ...base.services,
      gatewayService(input, docker.gateway, [
        attachmentAt(lastOctets.gateway, 'gateway'),
        { network: 'door', aliases: [] },
      ]),
    ],
  }
}

function etcdOf({ docker, images, etcd }: RegionStackInput, range: Range): Service[] {
  if (docker.clusters === undefined) return []
  if (images.etcd === undefined || etcd === undefined)
    throw new RangeError('The region has clusters, but no image or no credentials for etcd.')
  return etcdServices(images.etcd, range, etcd)
}

/**
 * Returns the names of the containers of etcd's members, which are attached to the clusters' networks; none in a region
 * without clusters.
 */
export function etcdContainersOf(input: RegionStackInput): string[] {
  const { services, id } = regionStack(input)
  return memberNumbers.flatMap((member) =>
    services.filter(({ name }) => name === etcdName(member)).map((service) => containerName(id, service)),
  )
}

/** Returns the name of the gateway's container, which is attached to the tenants' networks. */
export function gatewayContainerOf(input: RegionStackInput): string {
  const { gateway } = input.docker
  if ('container' in gateway) return gateway.container
  const service = regionStack(input).services.find(({ name }) => name === 'gateway')
  if (service === undefined) throw new RangeError('The region has no gateway.')
  return containerName(regionStackId(input.region, input.installation), service)
}

function gatewayService(input: RegionStackInput, published: OwnGateway, networks: readonly Attachment[]): Service {
  const { domain, docker, images, internalToken } = input
  if (images.gateway === undefined) throw new RangeError('The region has no image for its gateway.')
  const { host_address: hostAddress, port, postgres_port: postgresPort } = published
  return nodeService({
    name: 'gateway',
    image: images.gateway,
    livePort: ports.gatewayInternal,
    networks,
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
      ...limitsByAddress(published),
      ...egressEnvironment(docker),
    },
    internalToken: new SecretText(acceptedTokens(internalToken).join('\n')),
    volume: 'gateway',
    // The old one must have ended before its ports on the host are free.
    replace: 'stop-first',
    restarts: 0,
    isAttached: true,
    published: [
      { containerPort: ports.gateway, hostAddress, hostPort: port },
      { containerPort: ports.postgresProxy, hostAddress, hostPort: postgresPort },
    ],
  })
}

/** Returns the gateway's settings that depend on the proxies in front of all clients. */
function limitsByAddress({ trusted_proxies: proxies }: OwnGateway): Record<string, string> {
  if (proxies !== undefined) return { TENANTRY_TRUSTED_PROXIES: proxies.join(',') }
  // An unknown proxy may have any address, so an address has no share of its own: the gateway's maximum.
  return {
    TENANTRY_CONNECTIONS_PER_ADDRESS: '5000',
    TENANTRY_REQUESTS_PER_ADDRESS: '3600',
    TENANTRY_REJECTIONS_PER_ADDRESS: '1000000/1000000',
  }
}

function attachedContainersOf(docker: DockerSettings, range: Range): AttachedContainer[] {
  return [
    ...(docker.control_container === undefined
      ? []
      : [
          {
            container: docker.control_container,
            alias: 'control-plane',
            address: regionAddress(range, lastOctets.controlPlane),
          },
        ]),
    ...('container' in docker.gateway
      ? [{ container: docker.gateway.container, alias: 'gateway', address: regionAddress(range, lastOctets.gateway) }]
      : []),
  ]
}

function runtimeNumbers(docker: DockerSettings): number[] {
  return Array.from({ length: docker.shared_runtimes ?? 1 }, (_, number) => number)
}

type OwnGateway = Extract<DockerSettings['gateway'], { port: number }>
