// Computes a tenant's stack, with one branch per isolation model. Pure.
import { acceptedTokens, sentToken, tenantToken, type InternalToken } from '@tenantry/contract'
import { archiveSettings } from './archive-settings.ts'
import { clusterMembers, clusterRouters } from './cluster-services.ts'
import { clusterStack, type ClusterRegion } from './cluster-stack.ts'
import type { Isolation, OwnIsolation } from './isolation.ts'
import { hasEncryptedNetworks, hostsOf, type ContainerSettings } from './container-settings.ts'
import { processAddress } from './process-settings.ts'
import { relayedStorageEnvironment, runtimeEnvironment, siblingHosts, storageSecrets } from './runtime-settings.ts'
import { SecretText } from './secret-text.ts'
import type { Placement } from './placed.ts'
import type { Network, OtherContainer, Resources, Service, Stack } from './stack.ts'
import { failoverSeconds, nodeService, ports, postgresService } from './tenant-services.ts'

/** Limits of each component of a tenant. */
interface ComponentResources {
  postgres: Resources
  runtime: Resources
}

/** Input of a tenant's stack: the tenant and its region. */
export interface StackInput {
  id: string
  isolation: Isolation
  /** Whether services run. Suspended and paused tenants retain their data without running services. */
  running: boolean
  /** Whether the volumes hold a home and must not be created again. */
  hasHome: boolean
  resources: ComponentResources
  restarts: number
  /** Whether the WAL of the tenant's own Postgres is archived; absent: it is not. */
  isArchived?: boolean
  /** Digests of the images; undefined for tenants without services. A cluster's `postgres` is the image of its members. */
  images: { postgres: string; runtime: string } | undefined
  subnet: string | undefined
  /** Hosts of the services, in a region with several; absent: none are known. */
  placement?: Placement
}

/** The parts of a region that the stacks of its tenants use. */
export interface StackEnvironment {
  /** Containers of the region's gateways; none if the services are processes. */
  gateways: readonly OtherContainer[]
  internalToken: InternalToken
  /** Whether the services are processes, which have addresses instead of names, and reach the gateway without a network. */
  areProcesses?: boolean
  /** The region's settings; undefined for the defaults. */
  docker?: ContainerSettings | undefined
  /** The region's part for clusters; undefined in a region without clusters. */
  cluster?: ClusterRegion | undefined
}

/**
 * Returns a tenant's stack. A schema-per-tenant home needs no services of its own: the region's shared Postgres and
 * runtimes serve it.
 * @throws RangeError for a cluster in a region without clusters, which the API rejects earlier
 */
export function stackFor(tenant: StackInput, environment: StackEnvironment): Stack {
  switch (tenant.isolation) {
    case 'schema-per-tenant':
      return { id: tenant.id, state: 'running', networks: [], volumes: [], services: [] }
    case 'database-per-tenant':
      return dedicatedStack(tenant, environment)
    case 'cluster-per-tenant':
      return stackOfCluster(tenant, environment)
  }
}

/** Maximum number of sessions of a tenant's own database, for its runtime, its SQL clients and the control plane. */
const connections = 80
const reservedConnections = 54
const runtimeConnections = 40

/** Names of the services of a cluster's runtimes. */
const clusterRuntimes = ['runtime-1', 'runtime-2'] as const

/**
 * Returns a component's alias on the tenant's network. It contains the tenant's ID, because the gateway is on many
 * networks.
 * @param host the host of a single database, in a region with several: after a restore on another one, nothing reaches what the former host
 *   starts again when it returns
 */
export const componentAlias = (tenantId: string, component: 'postgres' | 'runtime', host?: string): string =>
  `${tenantId}-${component}${host === undefined ? '' : `-${host}`}`

/**
 * Returns the alias of the tenant's Postgres; of a cluster, that of the routers to the primary. They differ, because both run
 * during a move.
 * @param host as for `componentAlias`
 */
export const postgresAlias = (tenantId: string, isolation: Isolation, host?: string): string =>
  isolation === 'cluster-per-tenant' ? `${tenantId}-primary` : componentAlias(tenantId, 'postgres', host)

/** Names of services, of which there is at least one. */
type ServiceNames = readonly [string, ...string[]]

/** Returns the names of the services of each component of a tenant with services of its own. */
export function componentServices(isolation: Isolation): Record<'postgres' | 'runtime', ServiceNames> {
  return isolation === 'cluster-per-tenant'
    ? { postgres: clusterMembers, runtime: clusterRuntimes }
    : { postgres: ['postgres'], runtime: ['runtime'] }
}

/** Returns the names of all services of a tenant's own. */
export function serviceNames(isolation: Isolation): string[] {
  const { postgres, runtime } = componentServices(isolation)
  if (isolation === 'schema-per-tenant') return []
  return [...postgres, ...(isolation === 'cluster-per-tenant' ? clusterRouters : []), ...runtime]
}

/**
 * Returns the volume of each service of a tenant's own; undefined for a service without one. The runtimes of a cluster share
 * theirs, which is that of the first one.
 */
export function serviceVolumes(isolation: Isolation): Record<string, string | undefined> {
  const { postgres, runtime } = componentServices(isolation)
  const volumeOf = (service: string) => {
    const member = postgres.indexOf(service)
    if (member !== -1) return isolation === 'cluster-per-tenant' ? `data-${member + 1}` : 'data'
    return service === runtime[0] ? 'files' : undefined
  }
  return Object.fromEntries(serviceNames(isolation).map((service) => [service, volumeOf(service)]))
}

/** Returns the volumes of the databases, which only services of this model use. */
export function databaseVolumes(isolation: OwnIsolation): string[] {
  const volumes = serviceVolumes(isolation)
  return componentServices(isolation).postgres.flatMap((service) => volumes[service] ?? [])
}

/**
 * Returns the volumes that only services of this model use.
 * @param spansHosts whether the region has several hosts, so that these are all of them: each runtime of a cluster has a volume of its own
 */
export function volumesOfModel(isolation: OwnIsolation, spansHosts: boolean): string[] {
  const ofRuntimes = isolation === 'cluster-per-tenant' ? clusterRuntimes : ['files']
  return [...databaseVolumes(isolation), ...(spansHosts ? ofRuntimes : [])]
}

/** Returns the names of a tenant's own runtimes on its network. @param host as for `componentAlias` */
export function runtimeAliases(tenantId: string, isolation: Isolation, host?: string): string[] {
  return isolation === 'cluster-per-tenant'
    ? clusterRuntimes.map((name) => `${tenantId}-${name}`)
    : [componentAlias(tenantId, 'runtime', host)]
}

function dedicatedStack(tenant: StackInput, environment: StackEnvironment): Stack {
  const { id, resources, restarts, hasHome, isArchived, placement = {} } = tenant
  const { images, subnet } = allocated(tenant)
  const { gateways, areProcesses = false, docker } = environment
  const address = (component: 'postgres' | 'runtime') =>
    areProcesses ? { address: processAddress(subnet, component) } : {}
  return {
    id,
    state: tenant.running ? 'running' : 'stopped',
    networks: [
      {
        name: 'net',
        subnet,
        internal: true,
        hostAddress: false,
        ...encryptionOf(docker),
        attachedContainers: gateways.map((gateway) => ({ ...gateway, alias: 'gateway' })),
      },
    ],
    volumes: [
      { name: 'data', mustExist: hasHome, isGuarded: true },
      { name: 'files', mustExist: hasHome, isGuarded: false },
    ],
    services: [
      postgresService({
        image: images.postgres,
        network: {
          network: 'net',
          aliases: [postgresAlias(id, tenant.isolation, placement['postgres'])],
          ...address('postgres'),
        },
        resources: resources.postgres,
        connections,
        reservedConnections,
        // A tenant without an archive keeps its container: the settings are part of its hash.
        settings: isArchived === true ? archiveSettings : {},
        restarts,
      }),
      runtimeService(tenant, environment, {
        name: 'runtime',
        aliases: runtimeAliases(id, tenant.isolation, placement['runtime']),
        connections: runtimeConnections,
        ...address('runtime'),
        // Two processes cannot listen at one address.
        ...(areProcesses ? { replace: 'stop-first' } : {}),
      }),
    ],
  }
}

function stackOfCluster(tenant: StackInput, environment: StackEnvironment): Stack {
  const { id, running, hasHome, resources, restarts, isArchived = false, placement = {} } = tenant
  const { images, subnet } = allocated(tenant)
  const { gateways, cluster, docker } = environment
  if (cluster === undefined) throw new RangeError(`The region of the tenant ${id} has no clusters.`)
  const spansHosts = docker !== undefined && hostsOf(docker).length > 0
  const aliases = runtimeAliases(id, tenant.isolation)
  const runtime = (name: string, at: number) =>
    runtimeService(tenant, environment, {
      name,
      aliases: aliases.slice(at, at + 1),
      hasSharedStorage: spansHosts,
      // On several hosts, each has a volume of its own for what is temporary.
      ...(spansHosts ? { volume: name } : {}),
      connections: Math.floor(runtimeConnections / clusterRuntimes.length),
      siblings: clusterRuntimes.length - 1,
      failoverSeconds,
    })
  return clusterStack({
    id,
    running,
    hasHome,
    isArchived,
    restarts,
    subnet,
    image: images.postgres,
    resources: resources.postgres,
    gateways,
    postgresAlias: postgresAlias(id, 'cluster-per-tenant'),
    region: cluster,
    runtimes: clusterRuntimes.map(runtime),
    placement,
    spansHosts,
    encryption: encryptionOf(docker),
  })
}

function encryptionOf(docker: ContainerSettings | undefined): Pick<Network, 'isEncrypted'> {
  return docker !== undefined && hasEncryptedNetworks(docker) ? { isEncrypted: true } : {}
}

/** Returns what was allocated for the tenant's services. @throws RangeError before that */
function allocated({ id, images, subnet }: StackInput) {
  if (images === undefined || subnet === undefined)
    throw new RangeError(`The tenant ${id} has no images or no subnet yet.`)
  return { images, subnet }
}

interface RuntimeOptions {
  name: string
  /** Its names on the tenant's network. */
  aliases: readonly string[]
  /** Maximum number of its connections to Postgres. */
  connections: number
  /** Number of other runtimes that serve the tenant. */
  siblings?: number
  /** Maximum wait of a request for the next primary. */
  failoverSeconds?: number
  /** Fixed address; undefined for any of the subnet. */
  address?: string
  replace?: Service['replace']
  /** Whether the files are in the region's S3, because the runtimes have no volume in common. */
  hasSharedStorage?: boolean
  /** Name of the volume; absent: `files`. */
  volume?: string
}

function runtimeService(
  tenant: StackInput,
  { internalToken, docker }: StackEnvironment,
  options: RuntimeOptions,
): Service {
  const storage = options.hasSharedStorage === true ? docker : undefined
  const { name, connections: maxConnections, siblings = 0, failoverSeconds: wait = 0, address } = options
  return nodeService({
    name,
    image: allocated(tenant).images.runtime,
    livePort: ports.runtime,
    networks: [{ network: 'net', aliases: options.aliases, ...(address === undefined ? {} : { address }) }],
    resources: tenant.resources.runtime,
    environment: {
      TENANTRY_PORT: String(ports.runtime),
      TENANTRY_CONTROL_URL: `http://gateway:${ports.gatewayInternal}`,
      TENANTRY_MAX_CONNECTIONS: String(maxConnections),
      // A tenant with one runtime keeps its container: the settings are part of its hash.
      ...(siblings === 0 ? {} : { TENANTRY_SIBLINGS: String(siblings) }),
      ...siblingHosts(siblings === 0 ? [] : runtimeAliases(tenant.id, tenant.isolation)),
      ...(wait === 0 ? {} : { TENANTRY_FAILOVER_SECONDS: String(wait) }),
      ...(docker === undefined ? {} : runtimeEnvironment(docker)),
      ...(storage === undefined ? {} : relayedStorageEnvironment(storage, tenant.id)),
    },
    // The storage relay accepts the tenant's token as the secret key.
    secrets: storage === undefined ? {} : storageSecrets(tenantToken(sentToken(internalToken), tenant.id)),
    internalToken: new SecretText(
      acceptedTokens(internalToken)
        .map((token) => tenantToken(token, tenant.id))
        .join('\n'),
    ),
    volume: options.volume ?? 'files',
    replace: options.replace ?? 'start-first',
    restarts: tenant.restarts,
  })
}
