// The stack of a tenant with a cluster of its own: three members of Postgres, two routers to the primary, two runtimes. Pure.
import { memberArchiveSettings } from './archive-settings.ts'
import { derivedPassword, etcdName, memberNumbers, type EtcdCredentials } from './etcd-services.ts'
import { etcdPasswordPurpose, patroniConfiguration, patroniPort } from './patroni-settings.ts'
import type { Placement } from './placed.ts'
import { SecretText } from './secret-text.ts'
import type { AttachedContainer, HealthCheck, OtherContainer, Resources, Service, Stack } from './stack.ts'
import { postgresUser } from './tenant-services.ts'

/** The parts of a region that its clusters use. */
export interface ClusterRegion {
  etcd: EtcdCredentials
  /** Containers of etcd's members, which are attached to each cluster's network. */
  etcdContainers: readonly OtherContainer[]
}

const megabyte = 2 ** 20
const routerResources: Resources = { memoryBytes: 64 * megabyte, cpuMillis: 500, pids: 32 }
/** Memory of Patroni, in addition to that of Postgres. */
const patroniBytes = 128 * megabyte
/** Port of the routers' health check inside their containers. */
export const routerHealthPort = 8009

/** Names of the services of the members of Postgres in a cluster, which are their host names on the tenant's network. */
export const clusterMembers = ['postgres-1', 'postgres-2', 'postgres-3'] as const

/** Names of the services of the routers to the primary. */
export const clusterRouters = ['router-1', 'router-2'] as const

/** Returns the password of a tenant's user of the region's etcd. */
export function etcdTenantPassword(etcd: Pick<EtcdCredentials, 'seed'>, tenantId: string): string {
  return derivedPassword(etcd, etcdPasswordPurpose(tenantId))
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
    networks: [{ name: 'net', subnet, internal: true, hostAddress: false, attachedContainers: attached }],
    volumes: [
      ...memberNumbers.map((member) => ({ name: `data-${member}`, mustExist: false, isGuarded: false })),
      // Runtimes with a volume each have their files in S3.
      ...[...files].map((name) => ({ name, mustExist: hasHome && files.size === 1, isGuarded: false })),
    ],
    services: [
      ...memberNumbers.map((member) => memberService(input, member)),
      ...clusterRouters.map((name) => routerService(input, name)),
      ...runtimes,
    ],
  }
}

/**
 * Returns the name of a member for Patroni. It contains the host, because the former container of a member may still run on a host that
 * does not respond, and Patroni takes two members of one name for one, also as the primary.
 */
function memberIdentity(service: string, host: string | undefined): string {
  return host === undefined ? service : `${service}-${host}`
}

function memberService(
  { id, image, resources, restarts, isArchived, region: { etcd }, placement }: ClusterInput,
  member: (typeof memberNumbers)[number],
): Service {
  const name = `postgres-${member}`
  const identity = memberIdentity(name, placement[name])
  return {
    name,
    image,
    command: ['member'],
    environment: { TENANTRY_RESTARTS: String(restarts) },
    secrets: {
      'patroni.yml': new SecretText(
        patroniConfiguration({
          tenantId: id,
          member: identity,
          etcd,
          ownParameters: isArchived ? memberArchiveSettings : {},
        }),
      ),
      'etcd-ca.pem': new SecretText(etcd.authority),
    },
    volumes: { [`data-${member}`]: '/var/lib/postgresql' },
    scratch: { '/tmp': 'size=64m,mode=1777', '/run/postgresql': 'size=1m,mode=0700,uid=10002,gid=10002' },
    networks: [{ network: 'net', aliases: identity === name ? [name] : [name, identity] }],
    published: [],
    isAttached: false,
    // A member that copies the data or replays its log must not be killed for that.
    health: check(patroniPort, '/liveness', 3_600),
    resources: { ...resources, memoryBytes: resources.memoryBytes + patroniBytes },
    user: postgresUser,
    stopSeconds: 30,
    replace: 'stop-first',
  }
}

function routerService(
  { image, postgresAlias, restarts }: ClusterInput,
  name: (typeof clusterRouters)[number],
): Service {
  return {
    name,
    image,
    command: ['router'],
    environment: { TENANTRY_RESTARTS: String(restarts) },
    secrets: {},
    volumes: {},
    scratch: { '/tmp': 'size=1m,mode=1777' },
    // Clients try the addresses of an alias in turn.
    networks: [{ network: 'net', aliases: [postgresAlias] }],
    published: [],
    isAttached: false,
    health: check(routerHealthPort, '/'),
    resources: routerResources,
    user: postgresUser,
    stopSeconds: 5,
    replace: 'stop-first',
  }
}

/** Returns a health check. Its interval is long, because each check is a process in a container. */
function check(port: number, path: string, startSeconds = 20): HealthCheck {
  return {
    command: ['/usr/local/bin/is-ok', String(port), path],
    intervalSeconds: 60,
    timeoutSeconds: 10,
    retries: 2,
    startSeconds,
  }
}
